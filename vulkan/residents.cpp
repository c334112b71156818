#include "vulkan/residents.hpp"

#include "vulkan/commands.hpp"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <set>
#include <utility>

namespace troupe::vulkan {

/// What handles share with the device.
struct residents::returns {
  std::mutex mutex;
  std::vector<uint32_t> ended; // numbers of values without a handle
};

class residents::handle final : public resident {
public:
  handle(dtype type, shape dims, std::string device, uint32_t id, std::shared_ptr<returns> to)
      : resident(type, std::move(dims), std::move(device)), id_(id), to_(std::move(to)) {}
  ~handle() override {
    const std::lock_guard lock(to_->mutex);
    to_->ended.push_back(id_);
  }

  uint32_t id() const { return id_; }
  bool belongs_to(const std::shared_ptr<returns>& device) const { return to_ == device; }

private:
  const uint32_t id_;
  const std::shared_ptr<returns> to_;
};

/// Memory of one value, or of a cache's values of several steps.
struct residents::storage {
  uint64_t id = 0;
  int64_t bytes = 0; // that were asked for
  std::shared_ptr<const allocation> memory;
  cache_order order = cache_order::usual;
  int64_t position_bytes = 0;                            // of a cache that grows
  std::vector<std::pair<uint32_t, int64_t>> positions{}; // of its values, which are few: number and how many

  /// How many positions belong to values.
  int64_t filled() const {
    int64_t most = 0;
    for (const auto& [value, count] : positions)
      most = std::max(most, count);
    return most;
  }
  void forget(uint32_t id) {
    std::erase_if(positions, [&](const auto& each) { return each.first == id; });
  }

  value_place place() const {
    return {id, memory->buffer(), static_cast<VkDeviceSize>(memory->offset()),
            static_cast<VkDeviceSize>(memory->bytes())};
  }
  VkDescriptorBufferInfo range() const {
    const value_place p = place();
    return {p.buffer, p.offset, p.bytes};
  }
};

/// A value of a cache that has grown, and by how many positions.
struct residents::growth {
  handle_ptr value;
  int64_t by = 0;
};

/// The value after another one of a cache, made ahead: it is entered nowhere yet, so it keeps no memory.
struct residents::next_cache {
  std::weak_ptr<const handle> past; // keeps the address, by which the value is known, from being another one's
  const resident* at = nullptr;     // of `past`
  uint32_t past_id = 0;
  growth made;
  int64_t positions = 0;
  value_place rows;
};

/// One copy between a value and the host, outside of chunks; its completion holds it.
struct residents::host_copy {
  device_tensor value;
  std::vector<std::shared_ptr<const allocation>> held;
  host_end host;
  command_pool_handle pool;
  VkCommandBuffer commands = VK_NULL_HANDLE;
};

residents::residents(device_context& context, std::string name, memory_pool& memory, host_imports& imports,
                     row_copier& rows)
    : context_(context), name_(std::move(name)), memory_(memory), imports_(imports), rows_(rows),
      returns_(std::make_shared<returns>()) {}

residents::~residents() = default;

std::shared_ptr<residents::storage> residents::allocate(int64_t bytes, cache_order order) {
  reclaim();
  auto memory = std::make_shared<const allocation>(memory_.allocate(bytes));
  return std::make_shared<storage>(storage{.id = ++last_, .bytes = bytes, .memory = std::move(memory), .order = order});
}

residents::handle_ptr residents::make_handle(dtype type, shape dims) {
  if (free_.empty()) {
    if (free_.capacity() <= places_.size())
      free_.reserve(2 * places_.size() + 1); // for all numbers: one that comes back must find room
    places_.emplace_back();
    free_.push_back(static_cast<uint32_t>(places_.size() - 1));
  }
  auto made = std::make_shared<const handle>(type, std::move(dims), name_, free_.back(), returns_);
  free_.pop_back(); // it comes back with the handle's end
  return made;
}

device_tensor residents::make(dtype type, shape dims) {
  const int64_t bytes = bytes_of(type, volume(dims));
  std::shared_ptr<storage> memory = bytes > 0 ? allocate(bytes, cache_order::usual) : nullptr;
  handle_ptr made = make_handle(type, std::move(dims));
  places_.at(made->id()) = std::move(memory);
  return made;
}

const std::shared_ptr<residents::storage>& residents::storage_of(const device_tensor& value) const {
  const auto* own = dynamic_cast<const handle*>(value.get());
  if (!own || !own->belongs_to(returns_))
    fail(errc::invalid_argument, "a value is not in this device's memory, but in that of '{}' of another engine",
         value->device());
  return places_.at(own->id());
}

value_place residents::place_of(const device_tensor& value, row_moves& before) {
  const std::shared_ptr<storage>& from = storage_of(value);
  if (from->order == cache_order::usual)
    return from->place();
  const std::shared_ptr<storage> to = allocate(value->bytes(), cache_order::usual);
  before.copies.push_back(
      {reorder_rows(value->type(), value->dims(), from->order, to->order), from->range(), to->range()});
  before.held.insert(before.held.end(), {from->memory, to->memory});
  return to->place();
}

void residents::extend(const device_tensor& past, const shape& dims, int64_t room, grown_caches& grown,
                       row_moves& before) {
  const std::shared_ptr<storage> from = storage_of(past);
  const dtype type = past->type();
  const int64_t there = past->dims()[2], each = position_bytes(type, dims);
  const bool fits = from && from->order == cache_order::rows_first && from->position_bytes == each &&
                    dims[2] * each <= from->memory->bytes();
  if (fits && from->filled() > there)
    reclaim(); // a longer value may have ended
  std::shared_ptr<storage> to = from;
  if (!fits || from->filled() != there) {
    to = allocate(std::max(room, dims[2]) * each, cache_order::rows_first);
    to->position_bytes = each;
    if (past->bytes() > 0) {
      before.copies.push_back({reorder_rows(type, past->dims(), from->order, to->order), from->range(), to->range()});
      before.held.insert(before.held.end(), {from->memory, to->memory});
      before.then.emplace_back([this, past, to, there] { move(past, to, there); });
    }
  }
  handle_ptr made = make_handle(type, dims);
  places_.at(made->id()) = to;
  to->positions.emplace_back(made->id(), dims[2]);
  grown_.push_back({made, dims[2] - there});
  grown.rows.push_back(to->place());
  grown.values.push_back(std::move(made));
}

std::optional<grown_caches> residents::take_ahead(std::span<const wanted_cache> wanted) {
  if (wanted.empty())
    return std::nullopt;
  const auto found = std::ranges::find_if(ahead_, [&](const auto& each) { return each.front().at == wanted[0].past; });
  if (found == ahead_.end())
    return std::nullopt;
  std::vector<next_cache> next = std::move(*found);
  ahead_.erase(found);
  const auto fits = [&](const next_cache& n, const wanted_cache& w) {
    if (n.at != w.past || n.positions != w.positions)
      return false;
    const storage& memory = *places_.at(n.past_id); // unless somebody else has appended, or the rows have moved
    return memory.id == n.rows.id && memory.filled() == n.positions - n.made.by;
  };
  if (!std::ranges::equal(next, wanted, fits))
    return std::nullopt;
  grown_caches grown;
  grown.values.reserve(next.size());
  grown.rows.reserve(next.size());
  for (next_cache& n : next) {
    const std::shared_ptr<storage>& memory = places_.at(n.made.value->id()) = places_.at(n.past_id);
    memory->positions.emplace_back(n.made.value->id(), n.positions);
    grown.values.push_back(n.made.value);
    grown.rows.push_back(n.rows);
    grown_.push_back(std::move(n.made));
  }
  return grown;
}

void residents::grow_ahead() noexcept {
  constexpr size_t most = 8; // runs, of which each has other caches
  try {
    std::vector<next_cache> next;
    next.reserve(grown_.size());
    for (const growth& last : grown_) {
      const handle& past = *last.value;
      const storage& memory = *places_.at(past.id());
      const int64_t positions = past.dims()[2] + last.by;
      if (positions * memory.position_bytes > memory.memory->bytes())
        break;
      shape dims = past.dims();
      dims[2] = positions;
      next.push_back({last.value,
                      &past,
                      past.id(),
                      {make_handle(past.type(), std::move(dims)), last.by},
                      positions,
                      memory.place()});
    }
    if (!next.empty() && next.size() == grown_.size()) {
      if (ahead_.size() == most)
        ahead_.erase(ahead_.begin());
      ahead_.push_back(std::move(next));
    }
  } catch (const std::bad_alloc&) { // then they are made when they are wanted
  }
  grown_.clear();
}

/// The next step from the same past finds its rows where it can append to them.
void residents::move(const device_tensor& past, const std::shared_ptr<storage>& to, int64_t there) {
  const auto& own = static_cast<const handle&>(*past);
  const std::shared_ptr<storage> from = std::exchange(places_.at(own.id()), to);
  from->forget(own.id());
  to->positions.emplace_back(own.id(), there);
}

std::shared_ptr<residents::host_copy> residents::start_copy(const device_tensor& value, host_end host) const {
  auto copy = std::make_shared<host_copy>(host_copy{value, {}, std::move(host), make_command_pool(context_)});
  copy->commands = make_commands(context_, copy->pool);
  return copy;
}

void residents::submit(const host_copy& copy, const VkBufferCopy& region, VkBuffer from, VkBuffer to, timeline& queue,
                       completion done) {
  constexpr VkAccessFlags any_access = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
  begin(copy.commands, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);
  record(copy.commands, {VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT, any_access,
                         VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT});
  vkCmdCopyBuffer(copy.commands, from, to, 1, &region);
  record(copy.commands,
         {VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
          VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT, any_access | VK_ACCESS_HOST_READ_BIT});
  end(copy.commands);
  queue.submit(std::span(&copy.commands, 1), std::move(done));
}

void residents::fetch(const device_tensor& value, timeline& queue, fetch_done done) {
  const int64_t bytes = value->bytes();
  if (bytes == 0)
    return queue.after_all([value, done](VkResult) { done({.value = tensor(value->type(), value->dims())}); });
  row_moves before;
  const value_place from = place_of(value, before);
  const std::shared_ptr<host_copy> copy = start_copy(value, imports_.target(value->type(), value->dims()));
  copy->held = before.held;
  rows_.submit(before, queue);
  const VkBufferCopy region{from.offset, copy->host.offset, static_cast<VkDeviceSize>(bytes)};
  submit(*copy, region, from.buffer, copy->host.buffer, queue, [copy, done = std::move(done)](VkResult result) {
    copy->value = nullptr; // its memory may come back
    copy->held.clear();
    fetch_result fetched;
    try {
      check(result, "copying a value to the host");
      fetched.value = copy->host.take();
    } catch (const error& e) {
      fetched = {{}, e.code(), e.what()};
    }
    done(std::move(fetched));
  });
}

device_tensor residents::put(const tensor& value, timeline& queue) {
  if (holds_objects(value.type()))
    fail(errc::invalid_argument,
         "strings, sequences and optionals cannot be put on '{}': they stay in the host's memory", name_);
  device_tensor made = make(value.type(), value.dims());
  const int64_t bytes = value.bytes();
  if (bytes == 0)
    return made;
  const value_place to = storage_of(made)->place();
  const std::shared_ptr<host_copy> copy = start_copy(made, imports_.copied_source(value));
  const VkBufferCopy region{copy->host.offset, to.offset, static_cast<VkDeviceSize>(bytes)};
  submit(*copy, region, copy->host.buffer, to.buffer, queue, [copy](VkResult) {}); // the next wait sees a failure
  return made;
}

void residents::reclaim() {
  std::vector<uint32_t> ended;
  {
    const std::lock_guard lock(returns_->mutex);
    ended.swap(returns_->ended);
  }
  for (const uint32_t id : ended) {
    if (const std::shared_ptr<storage> memory = std::exchange(places_.at(id), nullptr))
      memory->forget(id);
    free_.push_back(id);
  }
}

int64_t residents::bytes() const {
  std::vector<bool> ended(places_.size());
  {
    const std::lock_guard lock(returns_->mutex);
    for (const uint32_t id : returns_->ended)
      ended.at(id) = true;
  }
  std::set<const storage*> held;
  for (size_t id = 0; id < places_.size(); ++id)
    if (places_[id] && !ended[id])
      held.insert(places_[id].get());
  return std::transform_reduce(held.begin(), held.end(), int64_t{0}, std::plus<>(),
                               [](const storage* each) { return each->bytes; });
}

} // namespace troupe::vulkan

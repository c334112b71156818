#include "vulkan/residents.hpp"

#include "vulkan/commands.hpp"

#include <atomic>
#include <mutex>

namespace troupe::vulkan {

/// What handles share with the device.
struct residents::returns {
  std::mutex mutex;
  std::vector<uint64_t> ended;        // numbers of values without a handle
  std::atomic<int64_t> bytes_held{0}; // of those with one
};

class residents::handle final : public resident {
public:
  handle(dtype type, shape dims, std::string device, uint64_t id, std::shared_ptr<returns> to)
      : resident(type, std::move(dims), std::move(device)), id_(id), to_(std::move(to)) {
    to_->bytes_held += bytes();
  }
  ~handle() override {
    to_->bytes_held -= bytes();
    const std::lock_guard lock(to_->mutex);
    to_->ended.push_back(id_);
  }

  uint64_t id() const { return id_; }
  bool belongs_to(const std::shared_ptr<returns>& device) const { return to_ == device; }

private:
  const uint64_t id_;
  const std::shared_ptr<returns> to_;
};

/// One copy between a value and the host, outside of chunks; its completion holds it.
struct residents::host_copy {
  device_tensor value;
  host_end host;
  command_pool_handle pool;
  VkCommandBuffer commands = VK_NULL_HANDLE;
};

residents::residents(device_context& context, std::string name, memory_pool& memory, host_imports& imports)
    : context_(context), name_(std::move(name)), memory_(memory), imports_(imports),
      returns_(std::make_shared<returns>()) {}

residents::~residents() = default;

device_tensor residents::make(dtype type, shape dims) {
  auto made = std::make_shared<const handle>(type, std::move(dims), name_, ++last_, returns_);
  if (made->bytes() > 0)
    places_[last_] = memory_.allocate(made->bytes());
  return made;
}

residents::place residents::place_of(const device_tensor& value) const {
  const auto* own = dynamic_cast<const handle*>(value.get());
  if (!own || !own->belongs_to(returns_))
    fail(errc::invalid_argument, "a value is not in this device's memory, but in that of '{}' of another engine",
         value->device());
  const allocation& memory = places_.at(own->id());
  return {own->id(), memory.buffer(), static_cast<VkDeviceSize>(memory.offset())};
}

std::shared_ptr<residents::host_copy> residents::start_copy(const device_tensor& value, host_end host) const {
  auto copy = std::make_shared<host_copy>(host_copy{value, std::move(host), make_command_pool(context_)});
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
  const place from = place_of(value);
  const std::shared_ptr<host_copy> copy = start_copy(value, imports_.target(value->type(), value->dims()));
  const VkBufferCopy region{from.offset, copy->host.offset, static_cast<VkDeviceSize>(bytes)};
  submit(*copy, region, from.buffer, copy->host.buffer, queue, [copy, done = std::move(done)](VkResult result) {
    copy->value = nullptr; // its memory may come back
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
  const place to = place_of(made);
  const std::shared_ptr<host_copy> copy = start_copy(made, imports_.copied_source(value));
  const VkBufferCopy region{copy->host.offset, to.offset, static_cast<VkDeviceSize>(bytes)};
  submit(*copy, region, copy->host.buffer, to.buffer, queue, [copy](VkResult) {}); // whoever waits next sees a failure
  return made;
}

void residents::reclaim() {
  std::vector<uint64_t> ended;
  {
    const std::lock_guard lock(returns_->mutex);
    ended.swap(returns_->ended);
  }
  for (uint64_t id : ended)
    places_.erase(id);
}

int64_t residents::bytes() const {
  return returns_->bytes_held;
}

} // namespace troupe::vulkan

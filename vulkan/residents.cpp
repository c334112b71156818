#include "vulkan/residents.hpp"

#include "vulkan/commands.hpp"

#include <atomic>
#include <cstring>
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

/// One copy between a value and the host, outside of chunks.
struct residents::host_copy {
  device_tensor value;
  command_pool_handle pool;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  allocation staging; // where host memory cannot be imported
  tensor host;
  std::atomic<bool> ended{false};
};

residents::residents(device_context& context, std::string name, memory_pool& memory, memory_pool& uploads,
                     memory_pool& downloads, host_imports& imports)
    : context_(context), name_(std::move(name)), memory_(memory), uploads_(uploads), downloads_(downloads),
      imports_(imports), returns_(std::make_shared<returns>()) {}

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

std::unique_ptr<residents::host_copy> residents::start_copy(const device_tensor& value) {
  auto copy = std::make_unique<host_copy>();
  copy->value = value;
  copy->pool = make_command_pool(context_);
  copy->commands = make_commands(context_, copy->pool);
  return copy;
}

void residents::submit(std::unique_ptr<host_copy> copy, const VkBufferCopy& region, VkBuffer from, VkBuffer to,
                       timeline& queue, completion done) {
  constexpr VkAccessFlags any_access = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
  begin(copy->commands, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);
  record(copy->commands, {VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT, any_access,
                          VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT});
  vkCmdCopyBuffer(copy->commands, from, to, 1, &region);
  record(copy->commands,
         {VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
          VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT, any_access | VK_ACCESS_HOST_READ_BIT});
  end(copy->commands);
  host_copy& kept = *copies_.emplace_back(std::move(copy));
  try {
    // The value must not wait for its memory until the device is called again. `ended` is last: from then on the device's thread
    // may free the copy.
    queue.submit(std::span(&kept.commands, 1), [&kept, done = std::move(done)](VkResult result) {
      kept.value = nullptr;
      done(result);
      kept.ended = true;
    });
  } catch (...) {
    copies_.pop_back();
    throw;
  }
}

void residents::fetch(const device_tensor& value, timeline& queue, fetch_done done) {
  const int64_t bytes = value->bytes();
  if (bytes == 0)
    return queue.after_all([value, done](VkResult) { done({.value = tensor(value->type(), value->dims())}); });
  const place from = place_of(value);
  auto copy = start_copy(value);
  VkBufferCopy region{from.offset, 0, static_cast<VkDeviceSize>(bytes)};
  VkBuffer to = VK_NULL_HANDLE;
  if (imports_.available()) {
    copy->host = imports_.make(value->type(), value->dims());
    const host_imports::place host = imports_.place_of(copy->host);
    to = host.buffer;
    region.dstOffset = host.offset;
  } else {
    copy->host = tensor(value->type(), value->dims());
    copy->staging = downloads_.allocate(bytes);
    to = copy->staging.buffer();
    region.dstOffset = static_cast<VkDeviceSize>(copy->staging.offset());
  }
  host_copy& kept = *copy;
  submit(std::move(copy), region, from.buffer, to, queue, [&kept, bytes, done = std::move(done)](VkResult result) {
    if (result != VK_SUCCESS) {
      const bool lost = result == VK_ERROR_DEVICE_LOST;
      return done({.code = lost ? errc::device_lost : errc::device_failed,
                   .message = "the GPU failed while a value was copied to the host"});
    }
    if (kept.staging) {
      kept.staging.invalidate(0, bytes);
      std::memcpy(kept.host.mutable_data(), kept.staging.mapped(), static_cast<size_t>(bytes));
    }
    done({.value = std::move(kept.host)});
  });
}

device_tensor residents::put(const tensor& value, timeline& queue) {
  if (value.type() == dtype::string)
    fail(errc::invalid_argument, "strings cannot be put on '{}': they stay in the host's memory", name_);
  device_tensor made = make(value.type(), value.dims());
  const int64_t bytes = value.bytes();
  if (bytes == 0)
    return made;
  const place to = place_of(made);
  auto copy = start_copy(made);
  VkBufferCopy region{0, to.offset, static_cast<VkDeviceSize>(bytes)};
  VkBuffer from = VK_NULL_HANDLE;
  if (imports_.available()) {
    // Not the block of the caller, who may change its bytes before the GPU reads them.
    copy->host = imports_.make(value.type(), value.dims());
    std::memcpy(copy->host.mutable_data(), value.data(), static_cast<size_t>(bytes));
    const host_imports::place host = imports_.place_of(copy->host);
    from = host.buffer;
    region.srcOffset = host.offset;
  } else {
    copy->staging = uploads_.allocate(bytes);
    std::memcpy(copy->staging.mapped(), value.data(), static_cast<size_t>(bytes));
    copy->staging.flush(0, bytes);
    from = copy->staging.buffer();
    region.srcOffset = static_cast<VkDeviceSize>(copy->staging.offset());
  }
  submit(std::move(copy), region, from, to.buffer, queue, [](VkResult) {}); // whoever waits next sees a failure
  return made;
}

void residents::reclaim() {
  std::erase_if(copies_, [](const auto& copy) { return copy->ended.load(); });
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

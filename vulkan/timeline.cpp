#include "vulkan/timeline.hpp"

#include "vulkan/device_choice.hpp"

#include <chrono>

namespace troupe::vulkan {
namespace {

/// A blocked thread wakes 100 to 300 µs after a GPU is done (H200, a virtual machine), so the waiter looks at the value for
/// some time before it blocks, longer than most inference takes. A software GPU computes on the cores that this would keep busy.
constexpr auto poll_time = std::chrono::milliseconds(5);
constexpr auto software_poll_time = std::chrono::microseconds(20);
/// A blocking wait is cut into slices, so that nothing waits for ever in one driver call.
constexpr uint64_t slice_ns = 1'000'000'000;

} // namespace

timeline::timeline(device_context& context) : context_(context) {
  const VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, nullptr,
                                       VK_SEMAPHORE_TYPE_TIMELINE, 0};
  const VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type, 0};
  VkSemaphore semaphore = VK_NULL_HANDLE;
  check(vkCreateSemaphore(context_.get(), &info, nullptr, &semaphore), "vkCreateSemaphore");
  semaphore_ = {context_.get(), semaphore};
  waiter_ = std::thread([this] { wait_loop(); });
}

timeline::~timeline() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  waiter_.join();
}

void timeline::submit(std::span<const VkCommandBuffer> commands, completion done) {
  const uint64_t value = last_ + 1;
  const VkSemaphore semaphore = semaphore_.get();
  VkTimelineSemaphoreSubmitInfo values{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
  values.signalSemaphoreValueCount = 1;
  values.pSignalSemaphoreValues = &value;
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO, &values};
  info.commandBufferCount = static_cast<uint32_t>(commands.size());
  info.pCommandBuffers = commands.data();
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &semaphore;
  check(vkQueueSubmit(context_.queue(), 1, &info, VK_NULL_HANDLE), "vkQueueSubmit");
  last_ = value;
  {
    const std::lock_guard lock(mutex_);
    pending_.push_back({value, std::move(done)});
  }
  changed_.notify_all();
}

void timeline::after_all(completion done) {
  {
    const std::lock_guard lock(mutex_);
    pending_.push_back({last_, std::move(done)});
  }
  changed_.notify_all();
}

VkResult timeline::wait_for(uint64_t value) {
  const bool hardware = is_hardware(context_.facts());
  const auto give_up = std::chrono::steady_clock::now() + (hardware ? poll_time : software_poll_time);
  uint64_t reached = 0;
  do {
    if (const VkResult result = vkGetSemaphoreCounterValue(context_.get(), semaphore_.get(), &reached);
        result != VK_SUCCESS)
      return result;
    if (reached >= value)
      return VK_SUCCESS;
  } while (std::chrono::steady_clock::now() < give_up);
  const VkSemaphore semaphore = semaphore_.get();
  VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, nullptr, 0, 1, &semaphore, &value};
  VkResult result;
  do
    result = vkWaitSemaphores(context_.get(), &info, slice_ns);
  while (result == VK_TIMEOUT);
  return result;
}

void timeline::wait_loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closing_ || !pending_.empty(); });
    if (pending_.empty())
      return;
    pending next = std::move(pending_.front());
    pending_.pop_front();
    lock.unlock();
    next.done(wait_for(next.value));
    next.done = nullptr;
    lock.lock();
  }
}

} // namespace troupe::vulkan

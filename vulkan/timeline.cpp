#include "vulkan/timeline.hpp"

#include "base/shared_work.hpp"
#include "vulkan/device_choice.hpp"

#include <chrono>

namespace troupe::vulkan {
namespace {

/// A blocked thread wakes 100 to 300 µs after a GPU is done (H200, a virtual machine), so the waiter looks at the value for
/// some time before it blocks, longer than most inference takes, and then for the next submission, which else it may hear of when that is done.
/// A software GPU computes on the cores that this would keep busy.
constexpr auto poll_time = std::chrono::milliseconds(5);
constexpr auto software_poll_time = std::chrono::microseconds(20);
/// After a question that the driver could not answer it is asked again, not at once.
constexpr auto pause_time = std::chrono::milliseconds(1);
/// A blocking wait is cut into slices, so that nothing waits for ever in one driver call.
constexpr uint64_t slice_ns = 1'000'000'000;

} // namespace

timeline::timeline(device_context& context)
    : context_(context), stays_awake_(is_hardware(context.facts()) && has_spare_cores()) {
  const VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, nullptr,
                                       VK_SEMAPHORE_TYPE_TIMELINE, 0};
  const VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type, 0};
  for (size_t l = 0; l < lane_count; ++l) {
    lanes_[l].queue = context_.queue(static_cast<lane>(l));
    VkSemaphore semaphore = VK_NULL_HANDLE;
    check(vkCreateSemaphore(context_.get(), &info, nullptr, &semaphore), "vkCreateSemaphore");
    lanes_[l].semaphore = {context_.get(), semaphore};
  }
  waiter_ = std::thread([this] { wait_loop(); });
}

timeline::~timeline() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    news_.fetch_add(1, std::memory_order_release);
  }
  changed_.notify_all();
  waiter_.join();
}

submission timeline::submit(std::span<const VkCommandBuffer> commands, completion done, lane on,
                            std::initializer_list<submission> after) {
  lane_state& own = state_of(on);
  const uint64_t value = own.last + 1;
  const VkSemaphore semaphore = own.semaphore.get();
  std::vector<VkSemaphore> awaited;
  std::vector<uint64_t> awaited_values;
  for (const submission& each : after)
    if (each.value > 0 && &state_of(each.on) != &own) { // a queue keeps its own order
      awaited.push_back(state_of(each.on).semaphore.get());
      awaited_values.push_back(each.value);
    }
  const std::vector<VkPipelineStageFlags> stages(awaited.size(), VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
  VkTimelineSemaphoreSubmitInfo values{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
  values.waitSemaphoreValueCount = static_cast<uint32_t>(awaited_values.size());
  values.pWaitSemaphoreValues = awaited_values.data();
  values.signalSemaphoreValueCount = 1;
  values.pSignalSemaphoreValues = &value;
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO, &values};
  info.waitSemaphoreCount = static_cast<uint32_t>(awaited.size());
  info.pWaitSemaphores = awaited.data();
  info.pWaitDstStageMask = stages.data();
  info.commandBufferCount = static_cast<uint32_t>(commands.size());
  info.pCommandBuffers = commands.data();
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &semaphore;
  std::list<pending> one; // made before: after the submission nothing may fail
  one.push_back({{on, value}, std::move(done)});
  check(vkQueueSubmit(own.queue, 1, &info, VK_NULL_HANDLE), "vkQueueSubmit");
  own.last = value;
  ++submissions_;
  newest_ = {on, value};
  queue_completion(one);
  return newest_;
}

void timeline::after_all(completion done) {
  std::list<pending> one;
  one.push_back({newest_, std::move(done)});
  queue_completion(one);
}

void timeline::queue_completion(std::list<pending>& one) noexcept {
  {
    const std::lock_guard lock(mutex_);
    pending_.splice(pending_.end(), one);
    news_.fetch_add(1, std::memory_order_release);
  }
  changed_.notify_all();
}

/// A question that there was no memory for says nothing about the submission, which may be at work on what its completion would
/// free: it is asked again.
VkResult timeline::wait_for(submission what) {
  for (;;) {
    const VkResult result = ask_for(what);
    if (result != VK_ERROR_OUT_OF_HOST_MEMORY && result != VK_ERROR_OUT_OF_DEVICE_MEMORY)
      return result;
    std::this_thread::sleep_for(pause_time);
  }
}

VkResult timeline::ask_for(submission what) {
  const uint64_t value = what.value;
  const VkSemaphore semaphore = state_of(what.on).semaphore.get();
  const bool hardware = is_hardware(context_.facts());
  const auto give_up = std::chrono::steady_clock::now() + (hardware ? poll_time : software_poll_time);
  uint64_t reached = 0;
  do {
    if (const VkResult result = vkGetSemaphoreCounterValue(context_.get(), semaphore, &reached); result != VK_SUCCESS)
      return result;
    if (reached >= value)
      return VK_SUCCESS;
    __builtin_ia32_pause(); // the core may have another thread, such as the one that submits
  } while (std::chrono::steady_clock::now() < give_up);
  VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, nullptr, 0, 1, &semaphore, &value};
  VkResult result;
  do
    result = vkWaitSemaphores(context_.get(), &info, slice_ns);
  while (result == VK_TIMEOUT);
  return result;
}

void timeline::look_for_news(uint64_t known) const {
  const auto give_up = std::chrono::steady_clock::now() + poll_time;
  while (news_.load(std::memory_order_acquire) == known && std::chrono::steady_clock::now() < give_up)
    __builtin_ia32_pause();
}

void timeline::wait_loop() {
  std::unique_lock lock(mutex_);
  for (bool waited = false;; waited = true) {
    if (stays_awake_ && waited && pending_.empty() && !closing_) {
      const uint64_t known = news_.load(std::memory_order_relaxed);
      lock.unlock();
      look_for_news(known);
      lock.lock();
    }
    changed_.wait(lock, [this] { return closing_ || !pending_.empty(); });
    if (pending_.empty())
      return;
    std::list<pending> next;
    next.splice(next.end(), pending_, pending_.begin());
    lock.unlock();
    const VkResult result = wait_for(next.front().what);
    if (next.front().done)
      next.front().done(result);
    next.clear();
    lock.lock();
  }
}

} // namespace troupe::vulkan

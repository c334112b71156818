#include "vulkan/timeline.hpp"

#include "base/cpu_relax.hpp"
#include "base/shared_work.hpp"
#include "vulkan/device_choice.hpp"

#include <algorithm>
#include <chrono>

namespace troupe::vulkan {
namespace {

/// A blocked thread wakes 100 to 300 µs after a GPU is done (H200, a virtual machine), so the waiter looks at the value
/// for some time before it blocks, longer than most inference takes, and then for the next submission, which else it
/// may hear of when that is done. A software GPU computes on the cores that this would keep busy.
constexpr auto poll_time = std::chrono::milliseconds(5);
constexpr auto software_poll_time = std::chrono::microseconds(20);
/// After a question that the driver could not answer it is asked again, not at once.
constexpr auto pause_time = std::chrono::milliseconds(1);
/// A blocking wait is cut into slices, so that nothing waits for ever in one driver call.
constexpr uint64_t slice_ns = 1'000'000'000;

/// See the constructor.
end_signal usual_end_signal(const device_context& context) {
  return is_hardware(context.facts()) && !context.owner().validates() ? end_signal::timestamp : end_signal::semaphore;
}

} // namespace

timeline::timeline(device_context& context, std::optional<end_signal> ends)
    : context_(context), ends_(ends.value_or(usual_end_signal(context))),
      stays_awake_(is_hardware(context.facts()) && has_spare_cores()) {
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

VkResult timeline::submit_batch(const lane_state& own, std::span<const VkCommandBuffer> commands,
                                const semaphore_list& before, const semaphore_list& after) {
  const std::vector<VkPipelineStageFlags> stages(before.count(), VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
  VkTimelineSemaphoreSubmitInfo values{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
  values.waitSemaphoreValueCount = before.count();
  values.pWaitSemaphoreValues = before.values.data();
  values.signalSemaphoreValueCount = after.count();
  values.pSignalSemaphoreValues = after.values.data();
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO, &values};
  info.waitSemaphoreCount = before.count();
  info.pWaitSemaphores = before.semaphores.data();
  info.pWaitDstStageMask = stages.data();
  info.commandBufferCount = static_cast<uint32_t>(commands.size());
  info.pCommandBuffers = commands.data();
  info.signalSemaphoreCount = after.count();
  info.pSignalSemaphores = after.semaphores.data();
  return vkQueueSubmit(own.queue, 1, &info, VK_NULL_HANDLE);
}

VkResult timeline::signal(lane_state& own, uint64_t value) {
  if (own.signalled >= value)
    return VK_SUCCESS;
  semaphore_list last;
  last.add({own.semaphore.get(), own.last});
  const VkResult result = submit_batch(own, {}, {}, last);
  if (result == VK_SUCCESS)
    own.signalled = own.last;
  return result;
}

timeline::semaphore_list timeline::others_than(const lane_state& own, std::initializer_list<submission> after) {
  semaphore_list before;
  for (const submission& each : after)
    if (lane_state& other = state_of(each.on); each.value > 0 && &other != &own) { // a queue keeps its own order
      check(signal(other, each.value), "vkQueueSubmit");
      before.add({other.semaphore.get(), each.value});
    }
  return before;
}

void timeline::submit_part(std::span<const VkCommandBuffer> commands, lane on,
                           std::initializer_list<submission> after) {
  lane_state& own = state_of(on);
  const std::lock_guard lock(mutex_of_queues_);
  check(submit_batch(own, commands, others_than(own, after), {}), "vkQueueSubmit");
  ++submissions_;
  own.has_parts = true;
}

submission timeline::submit(std::span<const VkCommandBuffer> commands, completion done, lane on,
                            std::initializer_list<submission> after, end_stamp end, const peer_links& peers) {
  lane_state& own = state_of(on);
  const std::lock_guard lock(mutex_of_queues_);
  const bool idle = own.complete == own.last;
  if (!idle)
    check(signal(own, own.last), "vkQueueSubmit");
  semaphore_list before = others_than(own, after), signals;
  std::ranges::for_each(peers.awaited, [&](const semaphore_value& each) { before.add(each); });
  // Where a semaphore interrupts the host in any case, another costs less than a submission of its own would for the
  // next one in the lane.
  if (!idle || !done || ends_ == end_signal::semaphore || peers.signalled.semaphore)
    end = {};
  const uint64_t value = own.last + 1;
  if (peers.signalled.semaphore) // first: peers wait for it
    signals.add(peers.signalled);
  if (!end.queries)
    signals.add({own.semaphore.get(), value});
  std::list<pending> one; // made before: after the submission nothing may fail
  one.push_back({{on, value}, std::move(done), end});
  check(submit_batch(own, commands, before, signals), "vkQueueSubmit");
  own.last = value;
  if (!end.queries)
    own.signalled = value;
  own.has_parts = false;
  ++submissions_;
  ended_by_timestamp_ += end.queries != VK_NULL_HANDLE;
  newest_ = {on, value};
  queue_completion(one);
  return newest_;
}

void timeline::after_all(completion done) {
  {
    const std::lock_guard lock(mutex_of_queues_);
    for (size_t l = 0; l < lane_count; ++l)
      if (lane_state& own = lanes_[l]; std::exchange(own.has_parts, false)) {
        newest_ = {static_cast<lane>(l), ++own.last};
        signal(own, own.last); // what is refused here the waiter asks for again
      }
  }
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

/// A question that there was no memory for says nothing about the submission, which may be at work on what its
/// completion would free: it is asked again.
VkResult timeline::wait_for(const pending& p) {
  for (;;) {
    const VkResult result = ask_for(p);
    if (result == VK_SUCCESS)
      note_complete(p);
    if (result != VK_ERROR_OUT_OF_HOST_MEMORY && result != VK_ERROR_OUT_OF_DEVICE_MEMORY)
      return result;
    std::this_thread::sleep_for(pause_time);
  }
}

VkResult timeline::ask_for(const pending& p) {
  lane_state& own = state_of(p.what.on);
  const bool hardware = is_hardware(context_.facts());
  const auto give_up = std::chrono::steady_clock::now() + (hardware ? poll_time : software_poll_time);
  do {
    if (const VkResult result = look_at(own, p); result != VK_NOT_READY)
      return result;
    cpu_relax(); // the core may have another thread, such as the one that submits
  } while (std::chrono::steady_clock::now() < give_up);
  return block_for(own, p.what.value);
}

/// Returns VK_NOT_READY while the GPU is at work.
VkResult timeline::look_at(const lane_state& own, const pending& p) const {
  if (own.complete >= p.what.value) // only this thread changes it
    return VK_SUCCESS;
  uint64_t reached = 0;
  if (p.end.queries)
    return vkGetQueryPoolResults(context_.get(), p.end.queries, p.end.index, 1, sizeof reached, &reached,
                                 sizeof reached, VK_QUERY_RESULT_64_BIT);
  const VkResult result = vkGetSemaphoreCounterValue(context_.get(), own.semaphore.get(), &reached);
  return result == VK_SUCCESS && reached < p.what.value ? VK_NOT_READY : result;
}

VkResult timeline::block_for(lane_state& own, uint64_t value) {
  {
    const std::lock_guard lock(mutex_of_queues_);
    if (const VkResult result = signal(own, value); result != VK_SUCCESS)
      return result;
  }
  const VkSemaphore semaphore = own.semaphore.get();
  VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, nullptr, 0, 1, &semaphore, &value};
  for (;;) {
    const VkResult result = vkWaitSemaphores(context_.get(), &info, slice_ns);
    if (result != VK_TIMEOUT)
      return result;
    if (look_)
      look_();
  }
}

void timeline::note_complete(const pending& p) {
  lane_state& own = state_of(p.what.on);
  const std::lock_guard lock(mutex_of_queues_);
  own.complete = std::max(own.complete, p.what.value);
}

void timeline::look_for_news(uint64_t known) const {
  const auto give_up = std::chrono::steady_clock::now() + poll_time;
  while (news_.load(std::memory_order_acquire) == known && std::chrono::steady_clock::now() < give_up)
    cpu_relax();
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
    const VkResult result = wait_for(next.front());
    if (next.front().done)
      next.front().done(result);
    next.clear();
    lock.lock();
  }
}

} // namespace troupe::vulkan

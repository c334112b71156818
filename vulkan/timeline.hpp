// The timelines of a device's queues, and the thread that waits for them.
//
// A device has lanes: work, and copies beside it on queues of their own if there are such. Every submission signals the next
// value of its lane's timeline semaphore: values only grow, and each is signalled once. The waiter is a thread of its own,
// so that whoever submits never blocks; it calls the completions in the order of the submissions, whatever their lane. (It is a
// thread and not a CAF actor because this folder does not know actors; its mailbox is `pending_`.)
#pragma once

#include "vulkan/device_context.hpp"

#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <span>
#include <thread>

namespace troupe::vulkan {

/// Called with VK_SUCCESS when a submission is complete, or with what went wrong.
using completion = std::function<void(VkResult)>;

/// Is complete when its lane's semaphore has reached the value; 0 stands for nothing, which is complete.
struct submission {
  lane on = lane::work;
  uint64_t value = 0;
};

class timeline {
public:
  explicit timeline(device_context& context);
  /// Waits for what has been submitted, unless the device is lost.
  ~timeline();

  /// Submits `commands`, to start when `after` is complete, and returns at once; `done` (may be null) is called by the waiter's
  /// thread. Throws `errc::device_lost` and other errors of the driver: then nothing is submitted and `done` is not called. Used by
  /// one thread at a time.
  submission submit(std::span<const VkCommandBuffer> commands, completion done, lane on = lane::work,
                    std::initializer_list<submission> after = {});

  /// Calls `done` after the completions of everything submitted so far.
  void after_all(completion done);

  /// Returns how many submissions there were, in all lanes.
  uint64_t submissions() const { return submissions_; }

private:
  struct pending {
    submission what;
    completion done;
  };
  struct lane_state {
    VkQueue queue = VK_NULL_HANDLE;
    semaphore_handle semaphore;
    uint64_t last = 0; // value assigned
  };

  lane_state& state_of(lane l) { return lanes_[context_.has(l) ? static_cast<size_t>(l) : 0]; }
  /// Moves the one element to the end of `pending_`; cannot fail, since the GPU may be at work already.
  void queue_completion(std::list<pending>& one) noexcept;
  void wait_loop();
  /// Looks for a change of `news_` for some time.
  void look_for_news(uint64_t known) const;
  VkResult wait_for(submission what);
  VkResult ask_for(submission what);

  device_context& context_;
  const bool stays_awake_; // the waiter, for some time after a submission is complete
  std::array<lane_state, lane_count> lanes_;
  uint64_t submissions_ = 0;
  submission newest_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<pending> pending_;
  bool closing_ = false;
  std::atomic<uint64_t> news_{0}; // how often `pending_` or `closing_` have changed
  std::thread waiter_;
};

} // namespace troupe::vulkan

// The timeline of one queue, and the thread that waits for it.
//
// Every submission signals the next value of one timeline semaphore: values only grow, and each is signalled once. The waiter
// is a thread of its own, so that whoever submits never blocks; it calls the completions in the order of the values. (It is a
// thread and not a CAF actor because this folder does not know actors; its mailbox is `pending_`.)
#pragma once

#include "vulkan/device_context.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <span>
#include <thread>

namespace troupe::vulkan {

/// Called with VK_SUCCESS when a submission is complete, or with what went wrong.
using completion = std::function<void(VkResult)>;

class timeline {
public:
  explicit timeline(device_context& context);
  /// Waits for what has been submitted, unless the device is lost.
  ~timeline();

  /// Submits `commands` and returns at once; `done` is called by the waiter's thread. Throws `errc::device_lost` and other
  /// errors of the driver; `done` is not called then. Used by one thread at a time.
  void submit(std::span<const VkCommandBuffer> commands, completion done);

  /// Calls `done` behind the completions of everything submitted so far.
  void after_all(completion done);

  /// Returns how many submissions there were: the last value.
  uint64_t last_value() const { return last_; }

private:
  struct pending {
    uint64_t value;
    completion done;
  };

  void wait_loop();
  VkResult wait_for(uint64_t value);

  device_context& context_;
  semaphore_handle semaphore_;
  uint64_t last_ = 0; // assigned
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<pending> pending_;
  bool closing_ = false;
  std::thread waiter_;
};

} // namespace troupe::vulkan

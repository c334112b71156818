// The timelines of a device's queues, and the thread that waits for them.
//
// A device has lanes: work, and copies beside it on queues of their own if there are such. Every submission has the
// next value of its lane's timeline: values only grow, and the lane's semaphore signals each at most once. The waiter
// is a thread of its own, so that the submitter never blocks; it calls the completions in the order of the submissions,
// whatever their lane. (It is a thread and not a CAF actor because this folder does not know actors; its mailbox is
// `pending_`.)
//
// A semaphore that is signalled interrupts a core of the host, for 30 µs: a thread that this run needs may be on it. So
// where commands end with a timestamp and nothing else is in flight in their lane, the waiter looks for that timestamp.
// The semaphore is signalled only if something comes to need it: the next submission, one of another lane that waits
// for this one, or a waiter that has looked for long enough.
#pragma once

#include "vulkan/device_context.hpp"

#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <optional>
#include <span>
#include <thread>

namespace troupe::vulkan {

/// Called with VK_SUCCESS when a submission is complete, or with what went wrong.
using completion = std::function<void(VkResult)>;

/// Is complete when its lane's semaphore has reached the value; 0 means nothing to wait for, which is complete.
struct submission {
  lane on = lane::work;
  uint64_t value = 0;
};

/// A timestamp that is the last command of a submission, so that all of these have been executed if it can be read; the
/// host has reset it before. Null: there is none.
struct end_stamp {
  VkQueryPool queries = VK_NULL_HANDLE;
  uint32_t index = 0;
};

/// A semaphore and a value of it.
struct semaphore_value {
  VkSemaphore semaphore = VK_NULL_HANDLE;
  uint64_t value = 0;
};

/// What a submission has to do with other GPUs (peers.hpp): what it waits for besides, and what it signals besides.
struct peer_links {
  std::vector<semaphore_value> awaited;
  semaphore_value signalled; // null: nothing
};

/// How the ends of submissions are told.
enum class end_signal : uint8_t {
  semaphore, // by the lane's semaphore, each
  timestamp, // by a timestamp where that is enough, see the top of this file
};

class timeline {
public:
  /// `ends` nullopt: by timestamps for hardware, unless the validation layer is loaded, which knows no ends but those
  /// of semaphores.
  explicit timeline(device_context& context, std::optional<end_signal> ends = std::nullopt);
  /// Waits for what has been submitted, unless the device is lost.
  ~timeline();

  /// Submits `commands`, to start when `after` is complete, and returns at once; `done` (may be null) is called by the
  /// waiter's thread. Throws `errc::device_lost` and other errors of the driver: then nothing is submitted and `done`
  /// is not called. Used by one thread at a time.
  submission submit(std::span<const VkCommandBuffer> commands, completion done, lane on = lane::work,
                    std::initializer_list<submission> after = {}, end_stamp end = {}, const peer_links& peers = {});

  /// Submits commands that are a part of the next submission in the lane, which is complete after them too. Throws as
  /// `submit` does.
  void submit_part(std::span<const VkCommandBuffer> commands, lane on, std::initializer_list<submission> after = {});

  /// Calls `done` after the completions of everything submitted so far.
  void after_all(completion done);

  /// Lets the waiter call `look` each time that it has waited for long, a second or so; before the first submission.
  void while_waiting(std::function<void()> look) { look_ = std::move(look); }

  /// Returns how many submissions there were, in all lanes.
  uint64_t submissions() const { return submissions_; }
  /// Returns how many of them were to end without the semaphore.
  uint64_t ended_by_timestamp() const { return ended_by_timestamp_; }

private:
  struct pending {
    submission what;
    completion done;
    end_stamp end; // null: the semaphore is signalled
  };
  struct lane_state {
    VkQueue queue = VK_NULL_HANDLE;
    semaphore_handle semaphore;
    uint64_t last = 0;      // value assigned
    uint64_t signalled = 0; // the semaphore comes to it by itself
    uint64_t complete = 0;  // as far as the waiter has seen
    bool has_parts = false; // of what comes after `last`
  };

  /// What a submission waits for in other lanes, or what it signals.
  struct semaphore_list {
    std::vector<VkSemaphore> semaphores;
    std::vector<uint64_t> values;

    void add(const semaphore_value& each) {
      semaphores.push_back(each.semaphore);
      values.push_back(each.value);
    }
    uint32_t count() const { return static_cast<uint32_t>(values.size()); }
  };

  lane_state& state_of(lane l) { return lanes_[context_.has(l) ? static_cast<size_t>(l) : 0]; }
  /// Submits what signals `after`. This and `signal`: with `mutex_of_queues_` locked.
  static VkResult submit_batch(const lane_state& own, std::span<const VkCommandBuffer> commands,
                               const semaphore_list& before, const semaphore_list& after);
  /// Returns what has to be waited for in other lanes than `own`, whose semaphores come to it.
  semaphore_list others_than(const lane_state& own, std::initializer_list<submission> after);
  /// Lets the lane's semaphore come to a value that has been submitted, if it does not by itself.
  static VkResult signal(lane_state& own, uint64_t value);
  /// Moves the one element to the end of `pending_`; cannot fail, since the GPU may be at work already.
  void queue_completion(std::list<pending>& one) noexcept;
  void wait_loop();
  /// Looks for a change of `news_` for some time.
  void look_for_news(uint64_t known) const;
  VkResult wait_for(const pending& p);
  VkResult ask_for(const pending& p);
  VkResult look_at(const lane_state& own, const pending& p) const;
  VkResult block_for(lane_state& own, uint64_t value);
  void note_complete(const pending& p);

  device_context& context_;
  const end_signal ends_;
  const bool stays_awake_;     // the waiter, for some time after a submission is complete
  std::function<void()> look_; // see `while_waiting`
  std::mutex mutex_of_queues_; // and of the lanes' numbers: the waiter, too, signals
  std::array<lane_state, lane_count> lanes_;
  uint64_t submissions_ = 0, ended_by_timestamp_ = 0;
  submission newest_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<pending> pending_;
  bool closing_ = false;
  std::atomic<uint64_t> news_{0}; // how often `pending_` or `closing_` have changed
  std::thread waiter_;
};

} // namespace troupe::vulkan

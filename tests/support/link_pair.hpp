// A link in memory: two ends joined by queues, slow, cut or stopped as a test wants it.
//
// By threads, each end's handler is called on a thread of the pair's, in real time. By hand, `step` delivers one frame
// after the other in virtual time, on the caller's thread: the same calls give the same times.
#pragma once

#include "remote/link.hpp"

#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

namespace troupe::test {

struct link_conditions {
  std::chrono::nanoseconds delay{0}; // of each frame
  double bytes_per_second = 0;       // each way; 0: no limit
  int64_t cut_after = -1;            // bytes sent, both ways together; -1: never
};

enum class link_driver : uint8_t { threads, by_hand };

class link_pair {
public:
  using time_point = std::chrono::steady_clock::time_point;

  explicit link_pair(link_conditions how = {}, link_driver driver = link_driver::threads);
  /// As `stop`.
  ~link_pair();
  link_pair(const link_pair&) = delete;
  link_pair& operator=(const link_pair&) = delete;

  /// Returns end 0 or 1.
  remote::link_ptr end(size_t i) const { return ends_[i]; }

  /// Calls no handler any more, once it returns, and lets go of them; the ends may be used on, in vain. Not for
  /// handlers to call.
  void stop();
  /// Delivers nothing until `release`, as if the hosts had stopped; frames may be sent.
  void hold();
  void release();
  /// Loses the frames on their way and ends the link.
  void cut();
  /// From now on.
  void set_conditions(link_conditions how);

  /// By hand: delivers the next frame or end; returns whether there was one.
  bool step();
  /// By hand: delivers all frames, also those that are sent meanwhile.
  void drain() {
    while (step()) {
    }
  }
  /// Returns the time that frames are delivered by; virtual by hand.
  time_point now() const;
  /// By hand: lets time pass.
  void advance(std::chrono::nanoseconds by);

  /// Returns how many bytes end i has sent.
  int64_t sent(size_t i) const;

private:
  struct wire;
  std::shared_ptr<wire> wire_;
  std::array<remote::link_ptr, 2> ends_;
  std::array<std::thread, 2> threads_;
};

} // namespace troupe::test

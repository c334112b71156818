// Which virtual thread goes on, and what time it is (virtual_threads.hpp). Only the thread that runs calls it.
#pragma once

#include "universe/virtual_threads.hpp"

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <pthread.h>
#include <vector>

namespace troupe::universe {

/// The time of a wait without a limit.
inline constexpr int64_t never_ns = INT64_MAX;

/// A thread of the system that runs when it is told to.
struct virtual_thread {
  uint32_t number = 0;
  std::atomic<uint32_t> may_run{0};
  const void* waits_for = nullptr; // an address; null: it can go on
  const char* call = "";           // in which it waits
  int64_t until_ns = never_ns;     // it waits at most until then
  bool timed_out = false;
  bool ended = false, detached = false;
  pthread_t system{};
  int system_id = 0;
  void* (*start)(void*) = nullptr;
  void* argument = nullptr;
};

/// See the top of this file.
class scheduler {
public:
  scheduler(const thread_rules& rules, std::function<void(stuck)> when_stuck);

  int64_t now() const { return now_; }
  uint64_t digest() const { return digest_; }
  uint64_t switches() const { return switches_; }
  virtual_thread& self() const { return *running_; }
  const std::vector<std::unique_ptr<virtual_thread>>& threads() const { return threads_; }

  /// Adds a thread, which can go on.
  virtual_thread& add();
  /// The running thread waits until `wake` finds it, or until a time. Returns whether it was woken.
  bool wait(const void* what, const char* call, int64_t until_ns = never_ns);
  /// Lets up to `most` threads that wait for `what` go on, in an order that the seed decides; returns how many.
  size_t wake(const void* what, size_t most = SIZE_MAX);
  /// The running thread could go on; perhaps another one does, or some time passes.
  void may_switch();
  /// The running thread ends; another one goes on.
  void end_thread();
  /// Blocks the calling thread of the system until it is `self`'s turn.
  void await_turn(virtual_thread& self);
  /// Returns a random number below `limit`.
  uint64_t below(uint64_t limit);

private:
  double chance();
  virtual_thread& next_thread();
  void wake_late_ones();
  void hand_over(bool come_back);
  /// Those that wait for addresses of one bucket, in the order in which they began.
  std::vector<virtual_thread*>& waiting_for(const void* what);

  const thread_rules rules_;
  const std::function<void(stuck)> when_stuck_;
  const int process_; // of the system
  uint64_t random_;
  int64_t now_ = 0;
  uint64_t digest_ = 0, switches_ = 0;
  std::vector<std::unique_ptr<virtual_thread>> threads_; // by number
  std::vector<virtual_thread*> ready_;
  std::array<std::vector<virtual_thread*>, 256> waiting_;        // each unlocked mutex looks for those that wait for it
  std::map<std::pair<int64_t, uint32_t>, virtual_thread*> late_; // those that wait until a time
  virtual_thread* running_ = nullptr;
  int ending_ = 0; // the system's number of the thread that ended last, until it is gone
};

} // namespace troupe::universe

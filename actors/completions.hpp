// Where callbacks run: one thread of an engine that does nothing else, started for the first of them.
//
// Devices and actors only hand outcomes over; so a callback may take its time, call `run` and wait, load models, or
// destroy the engine, and keeps only other callbacks waiting. No CAF here.
#pragma once

#include "run/request.hpp"
#include "troupe/session.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace troupe::actors {

/// The queue of one engine's callbacks, in the order in which their runs end. Thread-safe. Held by the engine and by
/// each callback that has not run, so that it outlives both.
class completions : public std::enable_shared_from_this<completions> {
public:
  /// Counts a callback that will come, and starts the thread if there is none. Throws `errc::cancelled` after `close`,
  /// `errc::out_of_memory` if no thread can be had.
  void expect();
  /// Takes back what `expect` counted.
  void call_off();
  /// Hands an expected callback over.
  void post(run_callback done, run_outcome outcome);

  /// Returns whether a callback is the caller.
  bool is_this_thread() const;

  /// Ends the thread after the last expected callback. With `wait`, returns after all have run, unless a callback is
  /// the caller.
  void close(bool wait);

private:
  struct call {
    run_callback done;
    run_outcome outcome;
  };

  void start_thread();
  void work();
  /// Calls and destroys; what the callback throws ends here, and is told the user once.
  void carry_out(call c);

  mutable std::mutex mutex_; // guards all below, except that only the thread uses told_
  std::condition_variable changed_;
  std::deque<call> calls_;
  size_t expected_ = 0; // calls that have not run to their end
  bool closed_ = false;
  std::thread::id thread_;
  bool told_ = false;
};

/// A callback and its one call. Called off if it dies before.
class completion {
public:
  /// Throws what `completions::expect` throws.
  completion(std::shared_ptr<completions> queue, run_callback done);
  ~completion();
  completion(const completion&) = delete;
  completion& operator=(const completion&) = delete;

  /// To be called once.
  void post(run_outcome outcome);

private:
  std::shared_ptr<completions> queue_; // null after the call was posted
  run_callback done_;
};

} // namespace troupe::actors

// What the engine hands to a session's coordinator: one run, or one question about plans, and the promise of its answer.
//
// Invariant: each is answered exactly once. Whoever drops one unanswered (an actor that ends, a mailbox that is closed)
// answers it with errc::cancelled by destroying it, so that no caller waits for ever.
#pragma once

#include "actors/engine.hpp"

#include <atomic>
#include <utility>

namespace troupe::actors {

/// An error as a value: what crosses actor boundaries instead of exceptions.
struct failure {
  errc code = errc::internal;
  std::string message; // empty where there is none

  bool failed() const { return !message.empty(); }
};

/// Calls `body`; returns what it threw as a value. The one place where exceptions end.
template <class Body>
failure capture(Body&& body) {
  try {
    body();
    return {};
  } catch (const error& e) {
    return {e.code(), *e.what() ? e.what() : "unknown error"};
  } catch (const std::bad_alloc&) {
    return {errc::out_of_memory, "the host is out of memory"};
  } catch (const std::exception& e) {
    return {errc::internal, std::string("internal error: ") + e.what()};
  }
}

/// A promise that is kept once: the first answer counts, later ones are ignored. Not thread-safe.
template <class T>
class answer_once {
public:
  answer_once() = default;
  answer_once(const answer_once&) = delete;
  answer_once& operator=(const answer_once&) = delete;
  ~answer_once() { fail({errc::cancelled, "the engine was closed before the answer was there"}); }

  std::future<T> future() { return promise_.get_future(); }
  bool answered() const { return answered_; }

  void answer(T value) {
    if (!std::exchange(answered_, true))
      promise_.set_value(std::move(value));
  }
  void fail(const failure& why) {
    if (!std::exchange(answered_, true))
      promise_.set_exception(std::make_exception_ptr(error(why.code, why.message)));
  }

private:
  std::promise<T> promise_;
  bool answered_ = false;
};

/// One run. Owned by the coordinator once it is sent; the inputs stay until the run has ended, for a run on other devices.
struct run_request {
  run_request(named_tensors in, const run_options& how);

  /// Unique in the process; stays the same when the run is done again after the loss of a device.
  const uint64_t ticket;
  named_tensors inputs;
  run_options options;
  const std::chrono::steady_clock::time_point started; // when the caller called
  /// By the coordinator's clock; empty where there is no limit.
  std::optional<std::chrono::steady_clock::time_point> deadline;
  answer_once<run_result> result;
  run_stats stats;      // filled while the run goes on
  int shortages = 0;    // how often a device had less memory for it than it claimed
  std::string shortage; // the last of them
  /// Set when the caller asked for the end before the coordinator saw the run.
  std::atomic<bool> cancelled{false};
};
using run_request_ptr = std::shared_ptr<run_request>;

/// What plan a run with these inputs would use.
struct plan_query {
  named_tensors inputs;
  answer_once<bound_plan_ptr> result; // the first segment; its `source` is the plan
};
using plan_query_ptr = std::shared_ptr<plan_query>;

/// What the session has done so far.
struct stats_query {
  answer_once<session_stats> result;
};
using stats_query_ptr = std::shared_ptr<stats_query>;

} // namespace troupe::actors

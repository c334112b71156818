// What callers of a session wait for: a run, or a question about plans, and the promise of its answer.
//
// Invariant: each is answered exactly once. An owner that drops one unanswered (an actor that ends, a mailbox that is
// closed) answers it with errc::cancelled by destroying it, so that no caller waits for ever. Therefore a caller
// never holds the half that answers while it waits: it makes a `std::unique_ptr`, which the message to the actor
// takes away (messages.hpp), and keeps the future.
#pragma once

#include "plan/bind/bound_plan.hpp"
#include "run/request.hpp"

#include <atomic>
#include <functional>
#include <future>
#include <utility>

namespace troupe::actors {

/// A promise that is kept once: the first answer counts, later ones are ignored. Not thread-safe.
template <class T>
class answer_once {
public:
  /// Where an answer goes instead of the future; the value counts unless the failure is one. Must not throw.
  using receiver = std::function<void(T value, const failure& why)>;

  answer_once() = default;
  explicit answer_once(receiver to) : to_(std::move(to)) {}
  answer_once(const answer_once&) = delete;
  answer_once& operator=(const answer_once&) = delete;
  ~answer_once() { fail({errc::cancelled, "the engine was closed before the answer was there"}); }

  std::future<T> future() { return promise_.get_future(); }
  bool answered() const { return answered_; }

  void answer(T value) {
    if (std::exchange(answered_, true))
      return;
    if (to_)
      return to_(std::move(value), {});
    promise_.set_value(std::move(value));
  }
  void fail(const failure& why) {
    if (std::exchange(answered_, true))
      return;
    if (to_)
      return to_({}, why);
    promise_.set_exception(std::make_exception_ptr(error(why.code, why.message)));
  }

private:
  std::promise<T> promise_;
  receiver to_; // empty if the promise counts
  bool answered_ = false;
};

/// A run and its caller.
struct pending_run {
  pending_run(named_tensors inputs, run_options options, answer_once<run_result>::receiver to = {},
              carried_values carried = {})
      : request(std::make_shared<run_request>(std::move(inputs), std::move(options), std::move(carried))),
        result(std::move(to)) {}
  pending_run(const pending_run&) = delete;
  pending_run& operator=(const pending_run&) = delete;
  virtual ~pending_run() = default;

  /// Shared with the caller: it answers nothing.
  const run_request_ptr request;
  answer_once<run_result> result;
  /// Set when the caller asked for the end, perhaps before the coordinator saw the run.
  std::atomic<bool> cancelled{false};
};
using pending_run_ptr = std::shared_ptr<pending_run>;

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

/// What the session's queue has done so far.
struct stream_query {
  answer_once<stream_stats> result;
};
using stream_query_ptr = std::shared_ptr<stream_query>;

} // namespace troupe::actors

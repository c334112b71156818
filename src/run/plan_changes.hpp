// The plans of a session whose devices are not as fast as they state, or become slower or faster meanwhile: what runs
// measure goes to a `speed_watch`. A plan for other speeds is made on the planner's thread, as all are. Runs that begin
// when it is there use it, and those in flight end by the old one: none waits.
//
// Only plans of several devices whose nodes are placed by predicted times are watched. Predictions of control flow, and
// of shapes that depend on data, are too vague; values that stay on devices between runs would have to move.
// Not thread-safe.
#pragma once

#include "run/agenda.hpp"
#include "run/execution.hpp"

namespace troupe {

/// Returns whether plans of a model may follow the speeds of devices: its policy places by predicted times.
bool follows_speeds(const model& m);

class plan_changes {
public:
  /// `watches`: where that is possible.
  plan_changes(session_plans& plans, agenda& todo, bool watches)
      : plans_(plans), todo_(todo), watches_(watches && follows_speeds(plans.known_model())) {}

  void set_time(run_time now) { now_ = now; }
  /// Takes how many runs are in flight.
  void count(size_t runs) {
    if (watches_)
      watch_.count(runs, now_);
  }
  /// Called when an execution has ended without a failure.
  void ended(execution& e);
  /// Called when a job of this has ended; `ok`: without a failure.
  void take(const change_plans& made, bool ok);

private:
  /// Returns what devices state of a run by a bound plan; null if that is not known yet: it will be if the plan runs
  /// again.
  const speed_watch::ended_run* stated(const prepared_run& run);
  void ask(const prepared_run& run);

  session_plans& plans_;
  agenda& todo_;
  bool watches_; // until values stay on devices
  run_time now_;
  speed_watch watch_;
  std::unordered_map<uint64_t, std::optional<speed_watch::ended_run>> stated_; // by bound plan
  std::vector<device_profile> before_; // that plans counted on before the last change
};

} // namespace troupe

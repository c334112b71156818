// What a session makes ready while an execution runs, for the run that is likely to follow it: its binding, on its
// devices, and if a bound session hands values on, the execution with its first chunks (run/run_ahead.hpp).
//
// A failure here is of the run that needs it: it looks again. Not thread-safe.
#pragma once

#include "run/agenda.hpp"
#include "run/run_ahead.hpp"
#include "run/run_book.hpp"

namespace troupe {

class steps_ahead {
public:
  steps_ahead(session_plans& plans, installations& installed, agenda& todo, run_book& book,
              std::vector<command>& commands, completion_mode completion)
      : plans_(plans), installed_(installed), todo_(todo), book_(book), commands_(commands), completion_(completion) {}

  /// Called when the execution of a model has begun, and when it has ended without a failure.
  void note_begin(const execution& e) { begun_ = e.id(); }
  void note_end(const execution& e) { hands_on_ = e.values().has_handed_on(); }
  /// Called once an execution knows which values it passes on.
  void expect_next(const execution& before);

  /// Has the run that is likely to follow the one that has begun last bound, and makes it ready.
  void prepare();
  /// Installs what has been bound for that, and makes the run ready.
  void install(const install_ahead& ahead);
  /// Begins the run that was made ready, if it is the one that is asked for; else what was made ready goes. Returns
  /// null if nothing has begun.
  execution* begin(const run_request_ptr& request);

private:
  /// Makes the run ready that is likely to follow an execution in flight, if that hands values on.
  void make(prepared_run next, execution_id after);

  session_plans& plans_;
  installations& installed_;
  agenda& todo_;
  run_book& book_;
  std::vector<command>& commands_;
  const completion_mode completion_;
  std::unique_ptr<run_ahead> ahead_; // null: none
  /// Whether the run that ended last knew ahead what it hands on: what is made ahead can follow no others.
  bool hands_on_ = false;
  execution_id begun_ = 0; // the last one of a model, if nothing has been made ahead for it; 0: none
};

} // namespace troupe

// What a session is to do next. Whatever an event leads to beyond its own effect is put down here and done after the
// event's handler has returned: so no handler is entered again from within. What lacks a plan waits for the job that
// makes it; there is one job at a time. Not thread-safe.
#pragma once

#include "run/commands.hpp"
#include "run/session_plans.hpp"

#include <deque>

namespace troupe {

/// An attempt at a run begins.
struct begin_run {
  run_request_ptr request;
  bool in_turn = true; // it waits for its turn if others wait for memory; not one that has begun before
};

/// An execution goes on with a segment.
struct begin_segment {
  execution_id execution = 0;
  uint32_t segment = 0;
};

/// A control-flow chunk executes the body that comes next.
struct begin_body {
  chunk_place place;
};

/// A question for a plan is answered.
struct begin_answer {
  uint64_t query = 0;
  named_tensors inputs;
};

/// The binding of a run that is likely to follow the execution `after` is installed.
struct install_ahead {
  prepared_run next;
  execution_id after = 0;
};

/// A plan for other speeds is there; null: no plan, but what was to be known before one is made.
struct change_plans {
  std::shared_ptr<const plan_beside> to;
};

struct task {
  std::variant<begin_run, begin_segment, begin_body, begin_answer, install_ahead, change_plans> what;
  plan_outcome made; // by the jobs that it has waited for
};

class agenda {
public:
  explicit agenda(std::vector<command>& commands) : commands_(commands) {}

  /// Adds what can be done now.
  void add(task next) { now_.push_back(std::move(next)); }
  /// Has `job` done, after which `next` can be done. If another job is in flight, `next` looks its plan up again after
  /// that: it may be there then.
  void add_after(plan_job job, task next);
  /// Called when the job in flight has ended.
  void on(const planned& answer);
  bool has_job() const { return job_.has_value(); }

  /// Returns what is to be done now, taking it off the list; nullopt if there is nothing.
  std::optional<task> next();

private:
  struct running_job {
    plan_job job;
    task then;
  };

  std::vector<command>& commands_;
  std::deque<task> now_;
  std::deque<task> later_;         // what looks its plan up after the job in flight
  std::optional<running_job> job_; // in flight
  uint64_t jobs_ = 0;              // begun so far
};

} // namespace troupe

// How a run begins, goes on and ends well: a run becomes an execution when its plan is there, ready chunks become
// `run_chunks`, each `chunk_ended` becomes the chunks that it makes ready. Bodies of control flow are executions like
// the others. What goes wrong is for `recovery`. Not thread-safe.
#pragma once

#include "run/recovery.hpp"

namespace troupe {

class attempts {
public:
  attempts(session_parts& session, recovery& otherwise, completion_mode completion)
      : s_(session), otherwise_(otherwise), completion_(completion) {}

  void on(const chunk_begun& begun);
  void on(chunk_ended& ended);
  /// Ends the runs that were to be prepared and whose plan is on its devices now.
  void on_installed(uint64_t bound_plan);

  /// Does what is on the agenda; `made`: how the jobs that it has waited for ended.
  void begin(const begin_run& run, const plan_outcome& made = {});
  void begin(const begin_segment& next, const plan_outcome& made);
  void begin(const begin_body& body, const plan_outcome& made = {});
  void begin(const begin_answer& query, const plan_outcome& made = {});
  void begin(const install_ahead& ahead, const plan_outcome& made);
  void begin(const change_plans& change, const plan_outcome& made) { s_.changes.take(change, made.ok()); }

private:
  /// Asks for host copies of all device inputs; answers when they are there.
  void fetch_all(const run_request_ptr& request);
  /// Returns the execution of a run whose plan and inputs are there; null if it waits for them.
  execution* start(const run_request_ptr& request, const plan_outcome& made);
  void start_body(execution& around, chunk_id chunk, control_flow::body_call call, const plan_outcome& made);
  void start_segment(execution& e, uint32_t segment, const plan_outcome& made);
  /// Returns an arena slot for the execution; nullopt if its run waits for memory that others hold.
  std::optional<uint32_t> take_slot(const execution& e, const bound_plan_ptr& bound);
  /// Sends the chunks that are ready.
  void dispatch(execution& e);
  /// Called when a chunk has made its values.
  void complete(execution& e, chunk_id chunk, chunk_result& result);
  /// Goes on if a segment is finished.
  void advance(execution& e);
  void finish(execution& e);
  void finish_body(execution& e);
  /// Answers the run of an execution that has ended well, and ends it.
  void answer(execution& e, run_result result);

  session_parts& s_;
  recovery& otherwise_;
  const completion_mode completion_;
};

} // namespace troupe

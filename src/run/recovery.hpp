// How a session goes on when something goes wrong: chunks and installs that fail, memory that devices do not have,
// devices that are lost. A run ends with one error, waits until others have ended, or starts over from its inputs: its
// attempt ends, and the next one is put on the agenda. Not thread-safe.
#pragma once

#include "run/session_parts.hpp"

namespace troupe {

class recovery {
public:
  explicit recovery(session_parts& session) : s_(session) {}

  void chunk_failed(execution& e, size_t device, const chunk_ended& ended);
  void on(size_t device, const plan_installed& answer);
  /// Takes a device out for good; its runs start over on those left.
  void lose_device(size_t device, const std::string& why);

  /// Lets a run wait for memory that others hold.
  void wait(const run_request_ptr& request);
  /// Starts a run over from its inputs, by a plan for the devices as they are.
  void start_over(const run_request_ptr& request);
  /// Starts an execution over whose next segment does not fit, by a plan in which it does; between segments nothing of
  /// it is in flight. A body's alone starts over if its plan is for the devices as they are.
  void start_over_spilled(execution& e, const memory_shortage& why);

private:
  /// If a device lacked memory for its part of a bound plan: lets go of bound plans that no run uses, or, if that was
  /// not it, plans with less memory; starts the bound plan's executions over. Returns whether that was the failure.
  bool make_room(size_t device, const bound_plan_ptr& bound, const failure& why);
  /// Starts the runs over that execute a bound plan which a device refuses because it has no kernel for the dims, by
  /// plans for these dims; those for which there is none end for the reason `why`.
  void plan_exactly(const bound_plan_ptr& bound, const failure& why);

  session_parts& s_;
};

} // namespace troupe

// The runs of a session that have not been answered, and their executions. Each run is answered once. An execution that
// ended early stays in the book until its last chunk is answered: only then is its slot free. Not thread-safe.
#pragma once

#include "run/control_chunks.hpp"
#include "run/memory_queue.hpp"

#include <map>

namespace troupe {

class run_book {
public:
  run_book(std::vector<command>& commands, installations& installed, control_chunks& controls, memory_queue& memory)
      : commands_(commands), installed_(installed), controls_(controls), memory_(memory) {}

  /// Returns whether there is neither a run nor an execution.
  bool empty() const { return runs_.empty() && executions_.empty(); }

  // -- runs, by ticket
  void add(const run_request_ptr& request) { runs_.emplace(request->ticket, request); }
  const std::map<uint64_t, run_request_ptr>& runs() const { return runs_; }
  void answer(run_request& request, run_result result, failure why = {});
  /// Answers a run that fails in `e`, which is said if `e` is an execution of a body, and ends its executions.
  void end_early(const execution& e, const failure& why);
  /// Ends the executions of a run early: its attempt, and those of bodies.
  void end_all(const run_request_ptr& request);

  // -- executions
  execution& add(std::unique_ptr<execution> begun);
  /// Returns null if there is none.
  execution* find(execution_id id) const;
  execution& at(execution_id id) const { return *executions_.at(id); }
  /// Returns one that has not ended early; null if there is none.
  execution* find_running(execution_id id) const;
  /// Returns the executions for which `which(execution)` holds; what is done to them may change the book.
  template <class Predicate>
  std::vector<execution_id> where(Predicate&& which) const {
    std::vector<execution_id> ids;
    for (const auto& [id, e] : executions_)
      if (which(*e))
        ids.push_back(id);
    return ids;
  }
  template <class Predicate>
  bool has(Predicate&& which) const {
    return std::ranges::any_of(executions_, [&](const auto& entry) { return which(*entry.second); });
  }
  /// Calls `work(execution)` for those that run a bound plan and have not ended early, also if that ends others of
  /// them.
  template <class Work>
  void for_each_running(uint64_t bound_plan, Work&& work) {
    for (execution_id id : where([&](const execution& e) { return e.bound() && e.bound()->id == bound_plan; }))
      if (execution* const e = find_running(id))
        work(*e);
  }
  /// Returns whether executions of other runs are there: each wakes those that wait when it ends.
  bool others_in_flight(const run_request_ptr& request) const {
    return has([&](const execution& e) { return e.request() != request; });
  }
  /// Returns the bytes that the run's executions use now, by device of the plan.
  std::vector<int64_t> memory_of(const run_request_ptr& request) const;

  /// Gives up an execution's slot.
  void leave_segment(execution& e);
  /// Takes an execution that has ended out of the book if no device holds a chunk of it.
  void drain(execution& e);
  /// Frees what the execution that ended last held. It may be of many pieces, so nothing should wait for it.
  void free_ended();

private:
  /// Returns "Loop 'x', iteration 3: " for an execution of a body, through all levels from the model's on.
  std::string position_of(const execution& e) const;
  /// Says to the devices that hold chunks of an execution that it ended early: the flag that chunks share does not
  /// reach other hosts.
  void tell_stopped(const execution& e);

  std::vector<command>& commands_;
  installations& installed_;
  control_chunks& controls_;
  memory_queue& memory_;
  // In the order in which they began, so that a session does the same each time (recording/replay.hpp).
  std::map<uint64_t, run_request_ptr> runs_;
  std::map<execution_id, std::unique_ptr<execution>> executions_;
  std::unique_ptr<execution> ended_; // the last one
};

} // namespace troupe

// What an execution costs: the time that devices work for it, those of bodies' executions included, and if the run is
// traced, when each chunk ran. Not thread-safe.
#pragma once

#include "run/model.hpp"
#include "trace/run_trace.hpp"

namespace troupe {

class execution_costs {
public:
  /// `planned`, which outlives this, is what is executed.
  execution_costs(const planned_model& planned, bool traced);

  bool traced() const { return traced_; }
  /// Called when a segment has begun, bound with this layout.
  void begin(const arena_layout& layout);
  void sent(chunk_id chunk);
  void ended(chunk_id chunk, chunk_result& result);
  /// Adds those of an execution of a body, and if the run is traced, its trace, by the name that says which it was.
  void add(execution_costs& body, std::string name);

  /// Returns how long each device of the plan has worked so far.
  const std::vector<int64_t>& busy_ns() const { return busy_ns_; }
  void add_to(run_stats& stats) const;
  /// Returns what was traced of a run that began then.
  run_trace take_trace(int64_t begin_ns);

private:
  const planned_model& planned_;
  const bool traced_;
  const int64_t started_ns_ = now_ns();
  std::vector<int64_t> busy_ns_; // by device
  std::vector<int64_t> sent_ns_; // by chunk, if the run is traced; else empty
  run_trace trace_;              // of chunks that have ended
};

} // namespace troupe

// What a simulation's chunks tell when it is over: the critical path of a request, and the trace of a run.
#pragma once

#include "sim/virtual_session.hpp"
#include "trace/run_trace.hpp"
#include "troupe/simulation.hpp"

namespace troupe::sim {

/// Keeps what is needed of the chunks that end. Memory grows with the chunks.
class chunk_log {
public:
  /// Notes a chunk that has ended.
  void add(const chunk_record& record);

  size_t chunks() const { return chunks_.size(); }

  /// Returns the chunks that the last one to end waited for, one after the other, the first first; at most `most`, the
  /// last ones.
  std::vector<critical_chunk> critical_path(const virtual_world& world, size_t most) const;

  /// Returns the trace of the first execution that is not one of a body's; null if there was none.
  std::shared_ptr<const run_trace> trace() const;

  /// Returns the bound plan that ran first, a body's aside; null if there was none.
  bound_plan_ptr first_plan() const { return chunks_.empty() ? nullptr : chunks_.front().bound; }

private:
  std::vector<chunk_record> chunks_;        // in the order of their ends
  std::unordered_map<uint64_t, size_t> at_; // by number: where in `chunks_`
};

} // namespace troupe::sim

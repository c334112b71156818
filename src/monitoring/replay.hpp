// A traced run played through again, so that one can see what it would take without some of its costs.
//
// The machine: a device runs its chunks one after the other, a chunk starts some lead after all that it waits for, and
// what waits for it on another device goes on when its answer has come back. With nothing changed the chunks take the
// time that the trace has, exactly.
#pragma once

#include "trace/run_trace.hpp"

namespace troupe::monitoring {

/// What a chunk took, in seconds.
struct replayed_chunk {
  device_index device = 0;
  uint32_t segment = 0;
  std::vector<chunk_id> predecessors;
  double lead_s = 0;   // from what it waits for to its begin; below 0 if it began beside the chunk before
  double move_s = 0;   // copies of values that come from other devices, or go there
  double input_s = 0;  // copies of the caller's inputs
  double work_s = 0;   // nodes
  double output_s = 0; // copies of what the caller gets
  double pause_s = 0;  // between the above, e.g. barriers
  double answer_s = 0; // from its end to the answer
  double begin_s = 0;  // in the trace, from the run's begin

  double busy_s() const { return move_s + input_s + work_s + output_s + pause_s; }
};

/// A run; see the top of this file.
struct replayed_run {
  std::vector<replayed_chunk> chunks; // by chunk
  double tail_s = 0;                  // from the last answer to the end
};

/// Returns the run that a trace shows, bodies of control flow as part of their nodes. Copies that go beside nodes cost
/// nothing.
replayed_run replay_of(const run_trace& trace);

/// Returns the seconds that it takes.
double makespan(const replayed_run& run);

/// Returns the seconds that it takes if `change` is made to every chunk.
template <class F>
double makespan_if(replayed_run run, F&& change) {
  for (chunk_id c = 0; c < run.chunks.size(); ++c)
    change(c, run.chunks[c]);
  return makespan(run);
}

} // namespace troupe::monitoring

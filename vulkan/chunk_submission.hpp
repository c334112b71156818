// In which order the parts of a chunk's run are submitted, and what each waits for.
//
// Everything of one slot is in order, whatever the lane: its next part waits for the last one. Slots do not wait for each other,
// so that one execution's large copies go beside another's work, and, in a chain of chunks, a piece comes down while the next
// one is computed.
#pragma once

#include "vulkan/direct_copies.hpp"

namespace troupe::vulkan {

/// The newest submissions that used a slot, by lane; values of executions before are complete.
struct lane_history {
  submission work{lane::work, 0}, in{lane::copies_in, 0}, out{lane::copies_out, 0};
};

/// Submits a run's commands; `done` is called when all of them are complete. Throws what `timeline::submit` throws.
void submit_chunk(timeline& queues, const chunk_commands& commands, const copy_lanes& lanes, lane_history& last,
                  const completion& done);

} // namespace troupe::vulkan

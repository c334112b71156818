// In which order the parts of a chunk's run are submitted, and what each waits for.
//
// Copies in, work and copies out are on lanes (`device_context::lane`); each lane keeps its order. Beyond that, in one
// slot:
//   copies in of chunk k     wait for the work of chunk k - 2 and the copies out of chunk k - 3
//   work of chunk k          waits for its copies in, and for the copies out of chunk k - 2
//   copies out of chunk k    wait for its work
// so that the next chunk's values come, and the last chunk's go, while a chunk computes. It is what the arena allows: a
// plan for a device that copies beside work keeps uploads and downloads one chunk longer (plan/lifetimes). Slots do not
// wait for each other: one execution's large copies go beside another's work.
//
// Pieces of large uploads, but for the last, are submitted before the copies in, in the same lane and after the same,
// as soon as the host has fetched them: the GPU copies one while the host fetches those after it.
#pragma once

#include "vulkan/direct_copies.hpp"

namespace troupe::vulkan {

/// What a slot's newest chunks submitted, the newest first; values of executions before are complete.
struct lane_history {
  std::array<submission, 2> work{};
  std::array<submission, 3> out{};
};

/// Submits a run's commands; `done` is called when all of them are complete. Throws what `timeline::submit` throws:
/// then `done` is not called, though parts of the run may be on their way (`timeline::after_all` is after them).
void submit_chunk(timeline& queues, const chunk_commands& commands, run_values& values, lane_history& slot,
                  const completion& done);

} // namespace troupe::vulkan

// GPU launches of a call that is several in one (ops/call_parts.hpp): those of its parts, step by step, with what they
// hand on in scratch memory.
#pragma once

#include "launch/launch.hpp"
#include "ops/call_parts.hpp"

namespace troupe {

/// Returns the ways to run the parts one after the other: the first way to run each of them, the second of each, and so
/// on. Empty if the GPU cannot run some part.
launch_lists launches_of_parts(const gpu_call& call, const call_parts& calls);

} // namespace troupe

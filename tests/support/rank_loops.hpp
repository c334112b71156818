// Models whose Loops change the rank of what they carry, and runs of them on any engine.
#pragma once

#include "actors/engine_access.hpp"
#include "support/control_models.hpp"

namespace troupe::test {

/// n times: v ← v + 1, with a dim more in front each time; v begins as x [rows, 2]. The output is "loop.0".
graph growing_rank();

/// n times: v ← v + 1, where the first 1 has the dims [1, 1, 1]; v begins as x [rows, 2]. The outputs are "y", the
/// result's negative, and "loop.1", the first elements of each iteration's.
graph broadened_once();

/// Returns inputs of a loop of n iterations with x = [[0, 1], [2, 3]].
named_tensors rank_inputs(int64_t n);

/// Runs models whose loops change ranks (in one iteration, in each, in an If, in a loop) on the engine's devices and
/// checks the results.
void check_rank_loops(engine& e, placement_policy policy);

} // namespace troupe::test

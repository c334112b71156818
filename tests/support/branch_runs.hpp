// Runs of models whose Ifs give another rank in each branch, on any engine.
#pragma once

#include "actors/engine_access.hpp"
#include "support/branch_models.hpp"

namespace troupe::test {

/// y = relu(x) · 2, with or without its axis 1 by `c`, as it is and summed over the last axis: the outputs "scaled" and
/// "sum".
graph branch_chain();

/// Checks a run of `branch_chain` on `squeezed_inputs(c)`.
void check_branch_chain(const run_result& r, bool c);

/// Runs models with branches of different ranks (outputs, chains, nested Ifs, in a Loop) on the engine's devices and
/// checks the results.
void check_branch_models(engine& e, placement_policy policy);

} // namespace troupe::test

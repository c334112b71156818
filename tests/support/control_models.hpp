// Graphs with control flow, built in code.
#pragma once

#include "graph/bodies.hpp"
#include "support/run_graph.hpp"
#include "support/small_models.hpp"

namespace troupe::test {

/// At most n times: x ← x · 2 + y, until x[0] ≥ limit[0]; the outputs are "loop.0", the last x, and "loop.1", all of
/// them.
graph growing_loop();

/// Its inputs with x = [1, 10], y = [1, 0].
named_tensors growing_inputs(int64_t n, float limit);

inline tensor count(int64_t n) {
  return tensor::scalar(n);
}

} // namespace troupe::test

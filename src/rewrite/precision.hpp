// What `precision::fp16` does to a rewritten graph: float32 becomes float16 inside, and stays at the model's ends.
#pragma once

#include "graph/graph.hpp"

namespace troupe {

/// Makes weights and activations that are float32 float16 (see precision.cpp), between conversions at inputs, outputs
/// and nodes that need float32. The graph must be inferred and topologically sorted. Runs once, after fusion.
void convert_to_float16(graph& g);

} // namespace troupe

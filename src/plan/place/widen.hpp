// float16 and bfloat16 on processors that compute in float32: stored narrow, computed wide.
//
// CPUs have no fast kernels for the two, GPUs' kernels compute no bfloat16, and converting around each node would cost
// as much memory traffic as the work. So a value between two nodes that compute on such a device is float32 there, and
// explicit Casts stand wherever the two types meet. What leaves the region is rounded to the type that the model
// states: graph outputs, values that cross devices, segments' symbols, and operands of nodes whose results are not such
// floats (a comparison, a Cast, an index of the largest): these decide by what the model says they see. Nodes that only
// move elements take them as they come: no table is widened to look up a row of it. Weights are widened by their
// recipes, once a device.
//
// Results have at most the roundings that the model states, mostly fewer; and nothing overflows in between.
#pragma once

#include "plan/plan.hpp"

namespace troupe {

/// Makes values float32 on the devices that compute their types so (`wide_types`), and inserts Casts (placed with the
/// node they serve). `g` must be sorted topologically, resolved and inferred; `placement` is by node and grows with the
/// graph.
void widen_floats(graph& g, std::vector<device_index>& placement, std::span<const device_info> devices);

} // namespace troupe

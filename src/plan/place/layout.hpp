// Memory layouts: on devices that prefer it, convolutions and their neighbours work on channels-last values.
//
// A node is channels-last where it is a convolution or pooling, or where it only hands on such values (elementwise,
// channel norms, concatenation along the channels). Explicit `troupe.Reorder` nodes stand wherever the two layouts
// meet. Graph inputs and outputs, constants, and values that cross devices are plain. A value with one channel or one
// spatial position is the same way in both layouts; it is called plain.
#pragma once

#include "plan/plan.hpp"

namespace troupe {

/// Chooses layouts, sets `value::layout`, and inserts Reorder nodes (placed with the node they serve). `g` must be
/// sorted topologically, resolved and inferred; `placement` is by node and grows with the graph.
void assign_layouts(graph& g, std::vector<device_index>& placement, std::span<const device_info> devices);

/// Checks that every node can read what its inputs' layouts are; throws `errc::internal` naming the node and operand.
void verify_layouts(const graph& g, std::span<const device_index> placement, std::span<const device_info> devices);

} // namespace troupe

// Segments: a node whose output shape depends on data ends one, because what needs that shape can only be bound
// afterwards.
//
// A node's segment is the longest path of such shapes on which it depends, through its operands, their dims and
// host-known elements, and its own outputs' dims. Nodes that do not depend on data-dependent shapes are in segment 0.
#pragma once

#include "plan/plan.hpp"

namespace troupe {

/// The segment of a value whose rank nothing but the value itself tells: no binding gives it dims.
inline constexpr uint32_t no_segment = UINT32_MAX;

struct segmentation {
  std::vector<uint32_t> of_node;
  std::vector<uint32_t> of_value; // see plan::segment_of_value
  uint32_t count = 1;
  std::vector<data_symbol> symbols;
};

/// Segments a topologically sorted graph; `producer` is by value. Throws `errc::unsupported` if a shape depends on a
/// symbol that neither an input nor a node defines, `errc::invalid_model` if shapes depend on each other in a circle.
segmentation find_segments(const graph& program, std::span<const node_id> producer);

} // namespace troupe

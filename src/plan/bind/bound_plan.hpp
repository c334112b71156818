// A segment of a plan with concrete dims: shapes and host-known values, in an arena layout. Immutable, shared by
// executions.
#pragma once

#include "plan/bind/arena_layout.hpp"

namespace troupe {

/// Concrete shapes of one segment (see the top of this file).
struct bound_plan {
  /// Unique in the process; devices know installed plans by it.
  uint64_t id = 0;
  std::shared_ptr<const plan> source;
  uint32_t segment = 0;
  arena_layout_ptr layout;   // of the same plan and segment
  bindings values;           // of the symbols, as `bind_in` was given them
  std::vector<shape> dims;   // by value; for values of this and earlier segments (`segment_of_value`), else empty
  std::vector<tensor> known; // by value: bytes of host-known values that a node of this segment reads; else undefined
};

using bound_plan_ptr = std::shared_ptr<const bound_plan>;

/// Binds `segment` of `p`, with a layout for exactly these dims. `values` holds the symbols' values: those of the
/// inputs and of earlier segments' outputs. Throws what `make_layout` throws.
bound_plan_ptr bind_segment(std::shared_ptr<const plan> p, uint32_t segment, const bindings& values);

/// Binds the layout's segment to `values`; null if they do not fit the layout. Throws `errc::invalid_input` if dims do
/// not fit together.
bound_plan_ptr bind_in(const arena_layout_ptr& layout, const bindings& values);

/// Returns the call of a node of `bound`'s segment as a GPU with these features will run it; it refers to the node's
/// attributes and to `gpu`. Throws `errc::unsupported` if an operand has 2^32 elements or more.
gpu_call make_gpu_call(const bound_plan& bound, const node& n, const gpu_features& gpu);

} // namespace troupe

// Concatenations that move nothing: each input is written by its own node straight into its part of the output.
//
// A Concat on a GPU is *joined* if all its inputs are parts: each is made on the same device in the same segment, by a
// node whose launch rule can write it so (`row_part`) with the kernel that it runs anyway, and nothing else reads it.
// Along the axis all sizes are numbers, so that a part begins at the same place of every row in every binding.
// `plan::storage` of the parts is the Concat's output; the Concat launches nothing. Writers of different parts write
// different elements: they do not wait for each other.
#pragma once

#include "ops/call.hpp"
#include "plan/plan.hpp"

namespace troupe {

/// Makes Concats of `p` joined that can be: changes `plan::storage`. `edges` are the program's; `segment_of_node` is by
/// node.
void join_parts(plan& p, const adjacency& edges, std::span<const uint32_t> segment_of_node);

/// Returns where `v` is in the larger tensor, which has `size` elements; no part if it is none.
row_part part_of(const plan& p, value_id v, int64_t size);

/// Calls `f` with the values that nodes write to fill the bytes of a root: its parts, or itself.
template <class F>
void for_each_written(const plan& p, value_id root, F&& f) {
  const node_id maker = p.producer[root];
  if (maker < 0 || !is_joined(p, p.program->nodes[maker]))
    return f(root);
  for (value_id v : p.program->nodes[maker].inputs)
    f(v);
}

} // namespace troupe

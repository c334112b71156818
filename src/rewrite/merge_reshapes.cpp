// Chains of views (Reshape, Squeeze …) become one Reshape, and so does a Transpose that only moves dims of size 1:
// the bytes stay where they are.
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"

namespace troupe {
namespace {

bool keeps_order(const graph_editor& e, const node& n) {
  if (!is_op(n, "Transpose") || !e.val(n.inputs[0]).dims)
    return false;
  const symbolic_shape& dims = *e.val(n.inputs[0]).dims;
  int64_t last = -1;
  for (int64_t axis : permutation_of(n, dims.size())) {
    if (axis < 0 || axis >= static_cast<int64_t>(dims.size()))
      return false;
    if (dims[axis].is(1))
      continue;
    if (axis < last)
      return false;
    last = axis;
  }
  return true;
}

/// Returns whether a node only gives its input's bytes other dims.
bool is_view(const graph_editor& e, const node& n) {
  return n.def->alias == aliasing::view || keeps_order(e, n);
}

} // namespace

bool merge_reshapes(graph_editor& e) {
  return each_node(e, [&](node_id n) {
    if (!is_view(e, e.at(n)) || !e.val(e.at(n).outputs[0]).dims)
      return false;
    value_id source = e.at(n).inputs[0];
    while (e.producer(source) >= 0 && is_view(e, e.at(e.producer(source))))
      source = e.at(e.producer(source)).inputs[0];
    const bool chained = source != e.at(n).inputs[0];
    if (!chained && !is_op(e.at(n), "Transpose"))
      return false;
    const value_id out = e.at(n).outputs[0];
    return e.replace(n, make_reshape(e, e.at(n).name, source, *e.val(out).dims, out));
  });
}

} // namespace troupe

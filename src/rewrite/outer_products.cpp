// A product of matrices that sums over one element is a multiplication: MatMul of […, M, 1] by […, 1, N] becomes Mul,
// which broadcasts as it does. So are the angles of a rotary embedding made, and a Mul joins chains where a product is
// a dispatch of its own.
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"

namespace troupe {

bool multiply_outer(graph_editor& e) {
  return each_present_node(e, [&](node_id n) {
    const node& call = e.at(n);
    if (!is_op(call, "MatMul"))
      return false;
    const auto &a = e.val(call.inputs[0]).dims, &b = e.val(call.inputs[1]).dims;
    return a && b && a->size() >= 2 && b->size() >= 2 && a->back().is(1) && (*b)[b->size() - 2].is(1) &&
           e.replace(n, make_node(call.name, "", "Mul", call.inputs, call.outputs));
  });
}

} // namespace troupe

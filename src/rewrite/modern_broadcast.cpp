// Binary operators of opsets 1 to 6 become those of opset 7. Their second operand lay at an axis of the first; here its
// dims say so, so that no fusion and no kernel has to know of it.
#include "ops/onnx/limited_broadcast.hpp"
#include "ops/registry.hpp"
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"

namespace troupe {
namespace {

constexpr int64_t modern_opset = 7;

/// Whether a node broadcasts by an axis, and can be told how it does: its operands' ranks are known.
bool is_limited(const graph_editor& e, const node& n) {
  return n.def->limited_broadcast && e.val(n.inputs[0]).dims && e.val(n.inputs[1]).dims;
}

/// Returns operand 1 of `n` under dims that NumPy's broadcast puts where the attributes say.
value_id align(graph_editor& e, const node& n) {
  const value operand = e.val(n.inputs[1]);
  const symbolic_shape dims = aligned_operand(n.attrs, *e.val(n.inputs[0]).dims, *operand.dims);
  if (dims.size() == operand.dims->size())
    return n.inputs[1];
  const std::string name = operand.name + "/aligned with " + e.val(n.inputs[0]).name;
  if (operand.constant)
    return e.add_constant(name, derive_reshape(operand.constant, constants(dims)));
  const value_id aligned = e.add_result(name);
  e.add_node(make_reshape(e, name, n.inputs[1], dims, aligned));
  return aligned;
}

} // namespace

bool modernise_broadcasts(graph_editor& e) {
  return each_node(e, [&](node_id n) {
    if (!is_limited(e, e.at(n)))
      return false;
    node modern = e.at(n);
    modern.inputs[1] = align(e, modern);
    modern.def = find_op("", modern.op_type, modern_opset);
    modern.attrs.erase("axis");
    modern.attrs.erase("broadcast");
    return e.replace(n, std::move(modern));
  });
}

} // namespace troupe

// Nodes whose output equals an input of theirs, bit for bit, go (`op_def::repeats`).
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"

namespace troupe {
namespace {

/// Returns the value that node `n` merely repeats, no_value if there is none.
value_id repeated(graph_editor& e, node& n) {
  const bool view = n.def->alias == aliasing::view;
  if (n.outputs.empty() || !(view || n.def->repeats) || !e.val(n.inputs[0]).dims)
    return no_value;
  const auto input = view ? 0 : n.def->repeats(infer_context(e.model(), n));
  const bool others =
      std::any_of(n.outputs.begin() + 1, n.outputs.end(), [&](value_id v) { return v != no_value && e.uses(v) > 0; });
  if (!input || others || !same_dims(e, n.inputs[*input], n.outputs[0]))
    return no_value;
  return e.val(n.inputs[*input]).type == e.val(n.outputs[0]).type ? n.inputs[*input] : no_value;
}

} // namespace

bool remove_noops(graph_editor& e) {
  return each_node(e, [&](node_id n) {
    const value_id same = repeated(e, e.at(n));
    return same != no_value && e.bypass(n, same);
  });
}

} // namespace troupe

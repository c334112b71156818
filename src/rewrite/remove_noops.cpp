// Nodes whose output equals their first input, bit for bit, go.
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"

namespace troupe {
namespace {

bool unused(const graph_editor& e, const node& n, size_t output) {
  return output >= n.outputs.size() || n.outputs[output] == no_value || e.uses(n.outputs[output]) == 0;
}

bool is_inference_dropout(const graph_editor& e, const node& n) {
  if (!is_op(n, "Dropout") || !unused(e, n, 1))
    return false;
  const value_id training = input_of(n, 2); // an attribute before opset 12; absent means inference
  return n.attrs.integer("is_test", 1) == 1 && (training == no_value || all_equal(e, training, 0));
}

bool is_plain_slice(const graph_editor& e, const node& n) {
  if (!is_op(n, "Slice"))
    return false;
  const value_id steps = input_of(n, 4);
  return steps == no_value || all_equal(e, steps, 1);
}

bool is_identity_permutation(const graph_editor& e, const node& n) {
  if (!is_op(n, "Transpose") || !e.val(n.inputs[0]).dims)
    return false;
  const auto perm = permutation_of(n, e.val(n.inputs[0]).dims->size());
  return std::is_sorted(perm.begin(), perm.end());
}

/// Operators that return input 0 unchanged whenever the dims stay the same.
bool is_reshaping(const node& n) {
  for (auto name : {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Expand"})
    if (is_op(n, name))
      return true;
  return false;
}

/// x * 1, x / 1, x ^ 1, x - 0 and true AND x are x bit for bit (x + 0 is not: it turns -0 into 0).
std::optional<value_id> neutral(const graph_editor& e, const node& n) {
  if (is_op(n, "Mul") || is_op(n, "And")) {
    for (size_t i : {0, 1})
      if (all_equal(e, n.inputs[i], 1))
        return n.inputs[1 - i];
  } else if (is_op(n, "Div") || is_op(n, "Pow")) {
    if (all_equal(e, n.inputs[1], 1))
      return n.inputs[0];
  } else if (is_op(n, "Sub")) {
    if (all_equal(e, n.inputs[1], 0))
      return n.inputs[0];
  }
  return std::nullopt;
}

/// Returns the value that node `n` merely repeats.
std::optional<value_id> repeated(const graph_editor& e, const node& n) {
  if (n.domain != "" || n.inputs.empty() || n.inputs[0] == no_value || n.outputs[0] == no_value)
    return std::nullopt;
  const value_id x = n.inputs[0];
  if (is_op(n, "Identity") || is_inference_dropout(e, n) || is_identity_permutation(e, n))
    return x;
  if ((is_op(n, "Concat") || is_op(n, "Sum") || is_op(n, "Max") || is_op(n, "Min") || is_op(n, "Mean")) &&
      n.inputs.size() == 1)
    return x;
  if (is_op(n, "Cast") && e.val(n.outputs[0]).type == e.val(x).type)
    return x;
  if (is_op(n, "Pad")) {
    const auto pads = n.inputs.size() > 1 ? known_integers(e, n.inputs[1]) : n.attrs.integers("pads", {});
    if (pads && std::all_of(pads->begin(), pads->end(), [](int64_t p) { return p == 0; }))
      return same_dims(e, x, n.outputs[0]) ? std::optional(x) : std::nullopt;
  }
  if ((is_reshaping(n) || is_plain_slice(e, n)) && same_dims(e, x, n.outputs[0]))
    return x;
  return neutral(e, n);
}

} // namespace

bool remove_noops(graph_editor& e) {
  bool changed = false;
  for (node_id n = 0; n < static_cast<node_id>(e.node_count()); ++n) {
    if (!e.alive(n))
      continue;
    const auto same = repeated(e, e.at(n));
    const value_id out = e.at(n).outputs.empty() ? no_value : e.at(n).outputs[0];
    if (!same || !same_dims(e, *same, out) || e.val(*same).type != e.val(out).type)
      continue;
    changed |= e.bypass(n, *same);
  }
  return changed;
}

} // namespace troupe

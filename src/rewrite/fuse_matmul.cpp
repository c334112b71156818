// Matrix products take in what is around them: MatMul and Gemm become troupe.MatMul with bias, residual and activation;
// a transposed operand becomes transA / transB instead of a copy; a Reshape after a product moves in front of it, so
// that what follows can be taken in as well.
//
// A product that ends up with nothing taken in stays as it was.
#include "rewrite/epilogue.hpp"
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"

namespace troupe {
namespace {

bool is_float(const graph_editor& e, value_id v) {
  return types::floats & set_of(e.val(v).type);
}

size_t rank_of(const graph_editor& e, value_id v) {
  return e.val(v).dims ? e.val(v).dims->size() : 0;
}

/// Returns whether a permutation exchanges the last two axes and keeps the others.
bool exchanges_last(const std::vector<int64_t>& perm) {
  const size_t rank = perm.size();
  for (size_t i = 0; i < rank; ++i) {
    const size_t expected = i + 2 < rank ? i : i + 1 == rank ? rank - 2 : rank - 1;
    if (perm[i] != static_cast<int64_t>(expected))
      return false;
  }
  return rank >= 2;
}

/// Returns what operand `v` is the transpose of (last two axes): a constant that a recipe transposes, or a Transpose
/// node's operand; no_value for anything else.
value_id transpose_source(graph_editor& e, value_id v) {
  if (const weight_ptr& w = e.val(v).constant) {
    const bool step = w->step && w->step->name == "Transpose" && w->step->domain.empty();
    if (!step || !exchanges_last(permutation_of(node{.attrs = w->step_attributes}, w->dims.size())))
      return no_value;
    return e.add_constant(e.val(v).name + "/untransposed", w->step_inputs.at(0));
  }
  const node_id n = produced_by(e, v, "Transpose");
  if (n < 0 || !exchanges_last(permutation_of(e.at(n), rank_of(e, v))))
    return no_value;
  return e.at(n).inputs[0];
}

/// Returns a fused product that computes what node `n` does; nullopt if it cannot.
std::optional<node> as_fused(const graph_editor& e, node_id n) {
  const node& call = e.at(n);
  if (!call.domain.empty() || (call.op_type != "MatMul" && call.op_type != "Gemm"))
    return std::nullopt;
  const value_id a = call.inputs[0], b = call.inputs[1], y = call.outputs[0];
  if (!is_float(e, a) || rank_of(e, a) < 2 || rank_of(e, b) < 2 || !e.val(y).dims)
    return std::nullopt;
  node fused = make_node(call.name, "troupe", "MatMul", {a, b}, {y});
  if (call.op_type == "MatMul")
    return fused;
  for (auto name : {"transA", "transB"})
    if (call.attrs.integer(name, 0) != 0)
      fused.attrs.set(name, int64_t{1});
  if (const float alpha = call.attrs.real("alpha", 1); alpha != 1)
    fused.attrs.set("alpha", alpha);
  const value_id c = input_of(call, 2);
  const float beta = call.attrs.real("beta", 1);
  if (c == no_value || beta == 0)
    return fused;
  const auto& dims = e.val(c).dims;
  if (beta != 1 || !dims)
    return std::nullopt;
  const dim& columns = e.val(y).dims->back();
  if (dims->size() == 1 && (*dims)[0] == columns) {
    fused.inputs.push_back(c);
  } else if (*dims == *e.val(y).dims) {
    fused.inputs.insert(fused.inputs.end(), {no_value, c});
  } else {
    return std::nullopt;
  }
  return fused;
}

/// Reads transposed operands as they are stored.
bool absorb_transposes(graph_editor& e, node& fused) {
  bool changed = false;
  for (size_t i : {0, 1}) {
    const char* name = i == 0 ? "transA" : "transB";
    const value_id source = transpose_source(e, fused.inputs[i]);
    if (source == no_value)
      continue;
    fused.inputs[i] = source;
    const bool was = fused.attrs.integer(name, 0) != 0;
    fused.attrs.erase(name);
    if (!was)
      fused.attrs.set(name, int64_t{1});
    changed = true;
  }
  return changed;
}

/// Returns the bias [N] that node `sum` adds to `y`, as a value; no_value if it is another node or adds something else.
value_id bias_of(graph_editor& e, node_id sum, value_id y) {
  if (!is_op(e.at(sum), "Add") || !same_dims(e, y, e.at(sum).outputs[0]))
    return no_value;
  const value_id other = e.at(sum).inputs[e.at(sum).inputs[0] == y ? 1 : 0];
  if (other == no_value)
    return no_value;
  const auto& dims = e.val(other).dims;
  const dim& columns = e.val(y).dims->back();
  if (!dims || dims->empty() || !(dims->back() == columns) || e.val(other).type != e.val(y).type)
    return no_value;
  if (dims->size() == 1)
    return other;
  const weight_ptr& w = e.val(other).constant;
  if (!w || volume(w->dims) != w->dims.back() || dims->size() > rank_of(e, y))
    return no_value;
  return e.add_constant(e.val(other).name + "/bias", derive_reshape(w, {w->dims.back()}));
}

bool has(const node& n, size_t input) {
  return input_of(n, input) != no_value;
}

/// Gives `fused` input `slot`.
void attach(node& fused, size_t slot, value_id v) {
  fused.inputs.resize(std::max(fused.inputs.size(), slot + 1), no_value);
  fused.inputs[slot] = v;
}

/// Y = Reshape(A · B) with the columns kept: Y = Reshape(A) · B.
bool lift_reshape(graph_editor& e, node& fused, node_id next) {
  const value_id y = fused.outputs[0], out = e.at(next).outputs[0], a = fused.inputs[0];
  const auto &from = e.val(y).dims, &to = e.val(out).dims;
  const bool plain = is_op(e.at(next), "Reshape") && !has(fused, 3) && rank_of(e, fused.inputs[1]) == 2 &&
                     fused.attrs.integer("transA", 0) == 0;
  if (!plain || !to || to->size() < 2 || !(to->back() == from->back()) || rank_of(e, a) < 2)
    return false;
  // Of rows without columns any number becomes any other: the operand's may not.
  const bool has_columns = from->back().is_constant() && !from->back().is(0);
  if (!has_columns &&
      !(volume(std::span(*to).first(to->size() - 1)) == volume(std::span(*from).first(from->size() - 1))))
    return false;
  symbolic_shape dims(to->begin(), to->end() - 1);
  dims.push_back(e.val(a).dims->back());
  const value_id v = e.add_result(e.val(out).name + "/operand");
  e.add_node(make_reshape(e, e.val(v).name, a, dims, v));
  fused.inputs[0] = v;
  return true;
}

/// Takes in one follower; returns what its name adds, empty if nothing fits.
std::string absorb_follower(graph_editor& e, node& fused, node_id next) {
  const value_id y = fused.outputs[0];
  if (fused.attrs.has("activation"))
    return "";
  if (lift_reshape(e, fused, next))
    return "+reshape";
  if (!has(fused, 2) && !has(fused, 3))
    if (const value_id bias = bias_of(e, next, y); bias != no_value) {
      attach(fused, 2, bias);
      return "+bias";
    }
  if (const value_id residual = residual_of(e, next, y); residual != no_value && !has(fused, 3)) {
    attach(fused, 3, residual);
    return "+add";
  }
  if (const auto act = activation_of(e, next, y)) {
    set_activation(fused.attrs, *act);
    return suffix_of(*act);
  }
  return "";
}

/// Fuses around node `n`; returns whether anything changed.
bool fuse_matmul_at(graph_editor& e, node_id n) {
  auto candidate = is_own(e.at(n), "MatMul") ? std::optional(e.at(n)) : as_fused(e, n);
  if (!candidate)
    return false;
  node fused = std::move(*candidate);
  bool changed = absorb_transposes(e, fused) || e.at(n).op_type == "Gemm";
  if (changed && !e.replace(n, fused))
    return false;
  for (;;) {
    const value_id y = fused.outputs[0];
    const node_id next = e.used_once(y) ? e.only_consumer(y) : -1;
    const std::string suffix = next < 0 ? "" : absorb_follower(e, fused, next);
    if (suffix.empty())
      return changed;
    fused.name += suffix == "+reshape" ? "" : suffix;
    fused.outputs[0] = e.at(next).outputs[0];
    if (!e.replace(next, fused))
      return changed;
    changed = true;
  }
}

} // namespace

bool fuse_matmul(graph_editor& e) {
  return each_present_node(
      e, [&](node_id n) { return (e.at(n).op_type == "MatMul" || e.at(n).op_type == "Gemm") && fuse_matmul_at(e, n); });
}

} // namespace troupe

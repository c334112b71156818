// Brings transposes where they can meet others or vanish:
//
// - Reshape(Transpose(x)) that adds a leading dim of 1 becomes Transpose(Reshape(x)): attention then sees four dims.
// - A Transpose that moves dims of 1 about keeps them in place, with a Reshape after it (which is free).
// - Op(Transpose(x), Transpose(y)) with equal permutations becomes Transpose(Op(x, y)) for elementwise operators, and
//   so does Op(Transpose(x)) if a Transpose follows, directly or after more of them.
// - Gather of one index along an axis of a transposed value gathers before the transpose.
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"

namespace troupe {
namespace {

using permutation = std::vector<int64_t>;

value_id add_reshape(graph_editor& e, value_id x, const symbolic_shape& dims) {
  const std::string origin = e.val(x).name;
  return add_inferred(e, make_reshape(e, origin + "/view", x, dims, no_value), origin);
}

bool lift_leading_one(graph_editor& e, node_id n) {
  const node_id before = produced_by(e, e.at(n).inputs[0], "Transpose");
  if (before < 0 || !e.used_once(e.at(n).inputs[0]))
    return false;
  const auto &inner = e.val(e.at(n).inputs[0]).dims, &outer = e.val(e.at(n).outputs[0]).dims;
  if (!inner || !outer || outer->size() != inner->size() + 1 || !(*outer)[0].is(1) ||
      !std::equal(inner->begin(), inner->end(), outer->begin() + 1))
    return false;
  const value_id x = e.at(before).inputs[0];
  symbolic_shape dims{1};
  dims.insert(dims.end(), e.val(x).dims->begin(), e.val(x).dims->end());
  permutation perm{0};
  for (int64_t axis : permutation_of(e.at(before), inner->size()))
    perm.push_back(axis + 1);
  const value_id view = add_reshape(e, x, dims);
  return e.replace(
      n, make_node(e.at(before).name, "", "Transpose", {view}, {e.at(n).outputs[0]}, perm_attribute(std::move(perm))));
}

bool settle_ones(graph_editor& e, node_id n) {
  const value_id x = e.at(n).inputs[0], out = e.at(n).outputs[0];
  if (!e.val(x).dims || !e.val(out).dims)
    return false;
  const symbolic_shape& dims = *e.val(x).dims;
  const permutation perm = permutation_of(e.at(n), dims.size());
  permutation moved, settled;
  for (int64_t axis : perm)
    if (!dims[static_cast<size_t>(axis)].is(1))
      moved.push_back(axis);
  size_t next = 0;
  for (size_t axis = 0; axis < dims.size(); ++axis)
    settled.push_back(dims[axis].is(1) ? static_cast<int64_t>(axis) : moved[next++]);
  if (settled == perm || std::is_sorted(moved.begin(), moved.end()))
    return false; // a pure move of ones is a Reshape: merge_reshapes
  const std::string name = e.at(n).name;
  const value_id inner =
      add_inferred(e, make_node(name, "", "Transpose", {x}, {}, perm_attribute(settled)), e.val(out).name);
  return e.replace(n, make_reshape(e, name + "/view", inner, *e.val(out).dims, out));
}

/// Returns whether a node computes each output element from the elements at the same place.
bool keeps_places(const node& n) {
  return n.def->alias == aliasing::in_place && is_elementwise(n.def->layouts) && n.inputs.size() <= 2 &&
         n.outputs.size() == 1;
}

/// Returns the common permutation of the operands that are not scalars, empty if there is none.
permutation common_permutation(const graph_editor& e, const node& n, size_t& transposes) {
  permutation common;
  for (value_id v : n.inputs) {
    if (scalar_constant(e, v) && e.val(v).dims->size() <= 1)
      continue;
    const node_id before = produced_by(e, v, "Transpose");
    if (before < 0 || !same_dims(e, v, n.outputs[0]))
      return {};
    const permutation perm = permutation_of(e.at(before), e.val(v).dims->size());
    if (!common.empty() && perm != common)
      return {};
    common = perm;
    ++transposes;
  }
  return common;
}

/// Returns whether `v` reaches a Transpose through elementwise nodes of one operand (scalars aside), each its only
/// reader.
bool transpose_follows(const graph_editor& e, value_id v) {
  for (int steps = 0; steps < 16; ++steps) {
    const node_id n = e.only_consumer(v);
    if (n < 0 || is_op(e.at(n), "Transpose"))
      return n >= 0;
    const auto& inputs = e.at(n).inputs;
    const bool passes = keeps_places(e.at(n)) && std::all_of(inputs.begin(), inputs.end(), [&](value_id in) {
                          return in == v || (scalar_constant(e, in) && e.val(in).dims->size() <= 1);
                        });
    if (!passes)
      return false;
    v = e.at(n).outputs[0];
  }
  return false;
}

bool sink_through(graph_editor& e, node_id n) {
  size_t transposes = 0;
  const permutation perm = common_permutation(e, e.at(n), transposes);
  const value_id out = e.at(n).outputs[0];
  const bool another_follows = transpose_follows(e, out);
  if (perm.empty() || (transposes < 2 && !another_follows))
    return false;
  node inner = e.at(n);
  for (value_id& v : inner.inputs)
    if (const node_id before = produced_by(e, v, "Transpose"); before >= 0) {
      if (!another_follows && !e.used_once(v))
        return false;
      v = e.at(before).inputs[0];
    }
  const std::string name = inner.name + "/transpose";
  const value_id fresh = add_inferred(e, std::move(inner), e.val(out).name);
  return e.replace(n, make_node(name, "", "Transpose", {fresh}, {out}, perm_attribute(perm)));
}

/// Returns the axis of `from` that is the `axis`-th of `to` if the two differ in dims of 1 only; nullopt if they do
/// not.
std::optional<size_t> matching_axis(const symbolic_shape& from, const symbolic_shape& to, size_t axis) {
  std::vector<size_t> a, b;
  for (size_t i = 0; i < from.size(); ++i)
    if (!from[i].is(1))
      a.push_back(i);
  for (size_t i = 0; i < to.size(); ++i)
    if (!to[i].is(1))
      b.push_back(i);
  if (a.size() != b.size() ||
      !std::equal(a.begin(), a.end(), b.begin(), [&](size_t i, size_t j) { return from[i] == to[j]; }))
    return std::nullopt;
  const auto it = std::find(b.begin(), b.end(), axis);
  return it == b.end() ? std::nullopt : std::optional(a[static_cast<size_t>(it - b.begin())]);
}

/// Gather of one index, of a Transpose or of a Reshape that moves dims of 1 over a Transpose.
bool gather_first(graph_editor& e, node_id n) {
  const node call = e.at(n);
  const value_id x = call.inputs[0], out = call.outputs[0];
  const auto& index = e.val(call.inputs[1]);
  if (!index.constant || !index.dims || !index.dims->empty() || !e.val(x).dims || !e.val(out).dims)
    return false;
  size_t axis = normalize_axis(call.attrs.integer("axis", 0), e.val(x).dims->size());
  node_id transpose = e.producer(x);
  if (const node_id view = produced_by(e, x, "Reshape"); view >= 0) {
    const value_id y = e.at(view).inputs[0];
    const auto found = e.val(y).dims ? matching_axis(*e.val(y).dims, *e.val(x).dims, axis) : std::nullopt;
    if (!found)
      return false;
    axis = *found;
    transpose = e.producer(y);
  }
  if (transpose < 0 || !is_op(e.at(transpose), "Transpose"))
    return false;
  const value_id u = e.at(transpose).inputs[0];
  const permutation perm = permutation_of(e.at(transpose), e.val(u).dims->size());
  const int64_t source = perm[axis];
  permutation rest;
  for (int64_t p : perm)
    if (p != source)
      rest.push_back(p - (p > source ? 1 : 0));
  attributes attrs;
  attrs.set("axis", source);
  const value_id picked =
      add_inferred(e, make_node(call.name, "", "Gather", {u, call.inputs[1]}, {}, attrs), e.val(out).name);
  const value_id turned = add_inferred(
      e, make_node(call.name + "/transpose", "", "Transpose", {picked}, {}, perm_attribute(rest)), e.val(out).name);
  return e.replace(n, make_reshape(e, call.name + "/view", turned, *e.val(out).dims, out));
}

} // namespace

bool push_transposes(graph_editor& e) {
  return each_present_node(e, [&](node_id n) {
    if (is_op(e.at(n), "Reshape"))
      return lift_leading_one(e, n);
    if (is_op(e.at(n), "Transpose"))
      return settle_ones(e, n);
    if (is_op(e.at(n), "Gather"))
      return gather_first(e, n);
    return keeps_places(e.at(n)) && sink_through(e, n);
  });
}

} // namespace troupe

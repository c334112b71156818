// Softmax attention as exporters write it becomes troupe.Attention:
//
//   MatMul(softmax(MatMul(Q · s₁, Kᵀ · s₂) · s₃ + mask), V)
//
// with scales anywhere or nowhere, the transpose of K alone or merged with the one that brings its heads forward, K and
// V repeated for groups of heads by Unsqueeze, Expand, Reshape, and head transposes before Q, K, V and after the
// result, which become layouts.
//
// Keys and values that are joined to those of a cache become operands of their own: attention then needs not wait for
// the joining, which the next step's cache is for. If nothing else reads what is joined, it becomes troupe.Append; so
// do the present keys and values that ONNX's Attention gives as outputs.
#include "ops/head_layout.hpp"
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"

namespace troupe {
namespace {

using permutation = std::vector<int64_t>;
const permutation swap_heads{0, 2, 1, 3}, swap_last{0, 1, 3, 2}, swap_both{0, 2, 3, 1};

/// An operand of attention: [B, H, S, D], or [B, S, H, D] if `bshd`.
struct head_operand {
  value_id source = no_value;
  bool bshd = false;
};

struct pattern {
  head_operand q, k, v;
  value_id mask = no_value;
  double scale = 1;
  node_id product = -1; // the last MatMul
};

bool is_rank4(const graph_editor& e, value_id v) {
  return v != no_value && e.val(v).dims && e.val(v).dims->size() == 4;
}

/// Returns the value that is transposed by `perm` into `v`, no_value if there is none.
value_id transposed_from(const graph_editor& e, value_id v, const permutation& perm) {
  const node_id n = produced_by(e, v, "Transpose");
  return n >= 0 && is_rank4(e, v) && permutation_of(e.at(n), 4) == perm ? e.at(n).inputs[0] : no_value;
}

/// Looks through a head transpose.
head_operand heads_of(const graph_editor& e, value_id v) {
  const value_id source = transposed_from(e, v, swap_heads);
  return source != no_value ? head_operand{source, true} : head_operand{v, false};
}

/// Looks through the repetition of heads for a group: [B, G, T, D] → [B, G, 1, T, D] → [B, G, n, T, D] → [B, G·n, T,
/// D].
value_id ungrouped(const graph_editor& e, value_id v) {
  const node_id join = produced_by(e, v, "Reshape");
  const node_id repeat = join < 0 ? -1 : produced_by(e, e.at(join).inputs[0], "Expand");
  if (repeat < 0 || !is_rank4(e, v))
    return v;
  const value_id lone = e.at(repeat).inputs[0];
  node_id split = produced_by(e, lone, "Reshape");
  if (split < 0)
    split = produced_by(e, lone, "Unsqueeze");
  if (split < 0 || !is_rank4(e, e.at(split).inputs[0]))
    return v;
  const value_id source = e.at(split).inputs[0];
  const symbolic_shape &from = *e.val(source).dims, &to = *e.val(v).dims;
  const auto &five = e.val(lone).dims, &repeated = e.val(e.at(repeat).outputs[0]).dims;
  if (!five || !repeated || repeated->size() != 5 || *five != symbolic_shape{from[0], from[1], 1, from[2], from[3]})
    return v;
  const bool right = *repeated == symbolic_shape{from[0], from[1], (*repeated)[2], from[2], from[3]} &&
                     to == symbolic_shape{from[0], from[1] * (*repeated)[2], from[2], from[3]} &&
                     (*repeated)[2].is_constant();
  return right ? source : v;
}

/// Takes a scalar factor off `v`.
value_id take_scale(const graph_editor& e, value_id v, double& scale) {
  const auto found = scaled_by_constant(e, v);
  if (!found)
    return v;
  scale *= found->scale;
  return found->source;
}

/// Finds Q, K and scale, of which `scores` = Q · Kᵀ · scale is made.
bool match_scores(const graph_editor& e, value_id scores, pattern& p) {
  const node_id n = produced_by(e, take_scale(e, scores, p.scale), "MatMul");
  if (n < 0)
    return false;
  p.q = heads_of(e, take_scale(e, e.at(n).inputs[0], p.scale));
  const value_id keys = take_scale(e, e.at(n).inputs[1], p.scale);
  if (const value_id k = transposed_from(e, keys, swap_last); k != no_value) {
    p.k = heads_of(e, ungrouped(e, k));
  } else if (const value_id both = transposed_from(e, keys, swap_both); both != no_value) {
    p.k = {both, true};
  } else {
    return false;
  }
  return is_rank4(e, p.q.source) && is_rank4(e, p.k.source);
}

/// Returns whether `mask` may be added inside the operator: it must not make the scores larger. The last dim is checked
/// when the node runs, since V pins it.
bool mask_fits(const graph_editor& e, value_id mask, value_id scores) {
  if (mask == no_value)
    return false;
  const auto &m = e.val(mask).dims, &s = e.val(scores).dims;
  if (!m || m->size() > 4 || e.val(mask).type != e.val(scores).type)
    return false;
  for (size_t i = 0; i + 1 < m->size(); ++i) {
    const dim& d = (*m)[i];
    if (!d.is(1) && !(d == (*s)[i + 4 - m->size()]))
      return false;
  }
  return m->empty() || !m->back().is_constant() || m->back().is(1) || m->back() == s->back() ||
         !s->back().is_constant();
}

/// Finds everything in front of the softmax `n`.
bool match_softmax(const graph_editor& e, node_id n, pattern& p) {
  const value_id in = e.at(n).inputs[0];
  if (!is_rank4(e, in))
    return false;
  const int64_t axis = e.at(n).attrs.integer("axis", e.at(n).def->since >= 13 ? -1 : 1);
  if (axis != -1 && axis != 3)
    return false;
  const node_id sum = produced_by(e, in, "Add");
  if (sum < 0)
    return match_scores(e, in, p);
  for (size_t i : {0, 1}) {
    pattern trial;
    const value_id scores = e.at(sum).inputs[i], mask = e.at(sum).inputs[1 - i];
    if (is_rank4(e, scores) && mask_fits(e, mask, scores) && match_scores(e, scores, trial)) {
      p = trial;
      p.mask = mask;
      return true;
    }
  }
  return false;
}

/// Brings an operand to heads-forward order where it is not.
value_id forward(graph_editor& e, const head_operand& x) {
  if (!x.bshd)
    return x.source;
  attributes attrs;
  attrs.set("perm", swap_heads);
  const value_id v = e.add_result(e.val(x.source).name + "/heads" + std::to_string(e.node_count()));
  e.add_node(make_node(e.val(v).name, "", "Transpose", {x.source}, {v}, std::move(attrs)));
  return v;
}

/// K and V share one layout: if they differ, the one whose heads come after positions gets a transpose.
void agree_on_layout(graph_editor& e, head_operand& k, head_operand& v) {
  if (k.bshd == v.bshd)
    return;
  k = {forward(e, k), false};
  v = {forward(e, v), false};
}

bool emit(graph_editor& e, pattern& p, float scale, const std::string& name) {
  agree_on_layout(e, p.k, p.v);
  attributes attrs;
  attrs.set("scale", scale);
  attrs.set("q_layout", std::string(p.q.bshd ? "bshd" : "bhsd"));
  attrs.set("kv_layout", std::string(p.k.bshd ? "bshd" : "bhsd"));
  node_id last = p.product;
  const node_id swap = consumed_by(e, e.at(last).outputs[0], "Transpose");
  const bool bshd = swap >= 0 && permutation_of(e.at(swap), 4) == swap_heads;
  if (bshd)
    last = swap;
  attrs.set("out_layout", std::string(bshd ? "bshd" : "bhsd"));
  std::vector<value_id> inputs{p.q.source, p.k.source, p.v.source};
  if (p.mask != no_value)
    inputs.push_back(p.mask);
  return e.replace(last, make_node(name + "+attention", "troupe", "Attention", std::move(inputs),
                                   {e.at(last).outputs[0]}, std::move(attrs)));
}

bool fuse_attention_at(graph_editor& e, node_id softmax) {
  pattern p;
  const value_id weights = e.at(softmax).outputs[0];
  p.product = e.used_once(weights) ? consumed_by(e, weights, "MatMul") : -1;
  const node_id product = p.product;
  if (product < 0 || e.at(product).inputs[0] != weights || !is_rank4(e, e.at(product).inputs[1]))
    return false;
  if (!match_softmax(e, softmax, p))
    return false;
  p.product = product;
  p.v = heads_of(e, ungrouped(e, e.at(product).inputs[1]));
  const auto heads = [&](const head_operand& x) { return (*e.val(x.source).dims)[x.bshd ? 2 : 1]; };
  const dim q = heads(p.q), k = heads(p.k), v = heads(p.v);
  const bool batches_agree = (*e.val(p.q.source).dims)[0] == (*e.val(p.k.source).dims)[0] &&
                             (*e.val(p.q.source).dims)[0] == (*e.val(p.v.source).dims)[0];
  if (!batches_agree || !q.is_constant() || !k.is_constant() || !(k == v) || k.constant() < 1 ||
      q.constant() % k.constant() != 0)
    return false;
  // Heads of 1 would be broadcast by MatMul, in order: that is not how groups share heads unless there is one group.
  const auto& keys = e.val(e.at(product).inputs[1]).dims;
  if (!((*keys)[1] == q))
    return false;
  const auto scale = as_attribute(p.scale, e.val(weights).type);
  return scale && emit(e, p, *scale, e.at(softmax).name);
}

/// A cache and what is joined to it along the positions.
struct joined_heads {
  value_id past, present;
};

/// Whether the rows of a cache, [B, H, P, D], are whole vectors. Kernels that read a cache where it is read such;
/// others would join it first, for each of its lengths anew.
bool has_vector_rows(const graph_editor& e, value_id past) {
  constexpr int64_t widest_vector = 8; // of float16
  const dim& width = (*e.val(past).dims)[3];
  return width.is_constant() && width.constant() % widest_vector == 0;
}

/// Finds what `v`, [B, H, T, D], is joined from.
std::optional<joined_heads> joined_from(const graph_editor& e, value_id v) {
  const node_id n = produced_by(e, v, "Concat");
  if (n < 0 || !is_rank4(e, v) || e.at(n).inputs.size() != 2)
    return std::nullopt;
  const int64_t axis = e.at(n).attrs.integer("axis");
  const joined_heads found{e.at(n).inputs[0], e.at(n).inputs[1]};
  if ((axis != 2 && axis != -2) || !is_rank4(e, found.past) || !is_rank4(e, found.present))
    return std::nullopt;
  return found;
}

bool take_cache_apart(graph_editor& e, node_id n) {
  const node attention = e.at(n);
  if (attention.inputs.size() > 4 || is_bshd(attention.attrs, "kv_layout"))
    return false;
  const auto k = joined_from(e, attention.inputs[1]), v = joined_from(e, attention.inputs[2]);
  if (!k || !v || !((*e.val(k->past).dims)[2] == (*e.val(v->past).dims)[2]) || !has_vector_rows(e, k->past) ||
      !has_vector_rows(e, v->past))
    return false;
  std::vector<value_id> inputs{attention.inputs[0],
                               k->present,
                               v->present,
                               attention.inputs.size() > 3 ? attention.inputs[3] : no_value,
                               k->past,
                               v->past};
  return e.replace(
      n, make_node(attention.name, "troupe", "Attention", std::move(inputs), {attention.outputs[0]}, attention.attrs));
}

/// New keys and values beside a cache need no head transposes.
bool take_transposes(graph_editor& e, node_id n) {
  const node attention = e.at(n);
  if (attention.inputs.size() <= 4 || is_bshd(attention.attrs, "kv_layout"))
    return false;
  const head_operand k = heads_of(e, attention.inputs[1]), v = heads_of(e, attention.inputs[2]);
  if (!k.bshd || !v.bshd)
    return false;
  std::vector<value_id> inputs = attention.inputs;
  inputs[1] = k.source;
  inputs[2] = v.source;
  attributes attrs = attention.attrs;
  attrs.set("kv_layout", std::string("bshd"));
  return e.replace(
      n, make_node(attention.name, "troupe", "Attention", std::move(inputs), {attention.outputs[0]}, std::move(attrs)));
}

/// Whether node `n` reads `past` only as keys or values of a cache of attention.
bool reads_cache(const node& n, value_id past) {
  for (size_t i = 0; i < n.inputs.size(); ++i)
    if (n.inputs[i] == past && !is_cache_input(n.domain, n.op_type, i))
      return false;
  return true;
}

/// Returns the Concat that joins new rows to `past`, an input, for an output that no node reads, if all other
/// readers of `past` are attention; else -1.
node_id joining_alone(const graph_editor& e, value_id past) {
  if (e.producer(past) >= 0 || e.val(past).constant || e.val(past).known)
    return -1;
  node_id join = -1;
  for (const node_id reader : e.consumers(past)) {
    const node& n = e.at(reader);
    if (reads_cache(n, past))
      continue;
    if (join >= 0 || !is_op(n, "Concat") || !e.is_output(n.outputs[0]) || e.uses(n.outputs[0]) != 1)
      return -1;
    join = reader;
  }
  if (join < 0 || !joined_from(e, e.at(join).outputs[0]) || e.at(join).inputs[0] != past ||
      e.at(join).inputs[1] == past)
    return -1;
  return join;
}

/// What is joined for the next step alone can grow where it is; new rows need no head transpose for that.
bool append_to_caches(graph_editor& e, node_id n) {
  bool changed = false;
  for (const size_t i : {past_key_input, past_value_input}) {
    const value_id past = input_of(e.at(n), i);
    const node_id join = past == no_value ? -1 : joining_alone(e, past);
    if (join < 0)
      continue;
    const node concat = e.at(join);
    const head_operand rows = heads_of(e, concat.inputs[1]);
    attributes attrs;
    attrs.set("new_layout", std::string(rows.bshd ? "bshd" : "bhsd"));
    changed |=
        e.replace(join, make_node(concat.name, "troupe", "Append", {past, rows.source}, {concat.outputs[0]}, attrs));
  }
  return changed;
}

/// Returns the new keys or values of ONNX's Attention, `v`, as rows of a cache like `past`: [B, H, S, D] or [B, S, H,
/// D].
head_operand new_rows(graph_editor& e, value_id v, value_id past) {
  if (is_rank4(e, v))
    return heads_of(e, v);
  const symbolic_shape flat = *e.val(v).dims, cache = *e.val(past).dims;
  const value_id split = e.add_result(e.val(v).name + "/rows" + std::to_string(e.node_count()));
  e.add_node(make_reshape(e, e.val(split).name, v, {flat[0], flat[1], cache[1], cache[3]}, split));
  return {split, true};
}

/// Whether `past`, to which `rows` are joined for `present`, may be an operand of attention beside an Append: an input
/// that only attention reads as a cache, and `present` is for the next step alone.
bool is_for_next_step(const graph_editor& e, value_id past, value_id rows, value_id present) {
  if (present == no_value || !e.is_output(present) || e.uses(present) != 1 || e.producer(past) >= 0 ||
      e.val(past).constant || e.val(past).known || rows == past)
    return false;
  if (e.val(past).type != e.val(rows).type || !e.val(rows).dims || !is_rank4(e, past) || !has_vector_rows(e, past) ||
      !(*e.val(past).dims)[1].is_constant())
    return false;
  const std::vector<node_id> readers = e.consumers(past);
  return std::all_of(readers.begin(), readers.end(), [&](node_id r) { return reads_cache(e.at(r), past); });
}

/// ONNX's Attention with a cache gives what the next step takes as outputs 1 and 2: such outputs are appended to the
/// cache beside it.
bool take_presents_apart(graph_editor& e, node_id n) {
  const node attention = e.at(n);
  const auto is_wanted = [&](size_t i) { return i < attention.outputs.size() && attention.outputs[i] != no_value; };
  if (input_of(attention, past_key_input) == no_value || !is_wanted(1) || !is_wanted(2) || is_wanted(3) ||
      e.uses(attention.outputs[0]) == 0)
    return false;
  for (const size_t i : {1, 2})
    if (!is_for_next_step(e, attention.inputs[i + 3], attention.inputs[i], attention.outputs[i]))
      return false;
  node alone = attention;
  alone.outputs.resize(1);
  if (!e.replace(n, std::move(alone)))
    return false;
  for (const size_t i : {1, 2}) {
    const value_id past = attention.inputs[i + 3], present = attention.outputs[i];
    const head_operand rows = new_rows(e, attention.inputs[i], past);
    attributes attrs;
    attrs.set("new_layout", std::string(rows.bshd ? "bshd" : "bhsd"));
    e.add_node(make_node(e.val(present).name, "troupe", "Append", {past, rows.source}, {present}, std::move(attrs)));
  }
  return true;
}

} // namespace

bool fuse_attention(graph_editor& e) {
  return each_present_node(e, [&](node_id n) {
    bool changed = is_op(e.at(n), "Softmax") && fuse_attention_at(e, n);
    if (e.alive(n) && is_op(e.at(n), "Attention"))
      changed |= take_presents_apart(e, n);
    if (e.alive(n) && is_own(e.at(n), "Attention"))
      for (const auto take : {take_cache_apart, take_transposes, append_to_caches})
        changed |= take(e, n);
    return changed;
  });
}

} // namespace troupe

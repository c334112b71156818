// Normalisations that exporters write as several nodes become one: layer norm, RMS norm, and group norm in the form of
// Reshape, InstanceNormalization, Reshape, Mul, Add. Norms of channels take in the activation that follows them.
#include "rewrite/epilogue.hpp"
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"

namespace troupe {
namespace {

/// Returns the operand of a ReduceMean over the last axis that keeps it; no_value for anything else.
value_id mean_over_last(const graph_editor& e, value_id v) {
  const node_id n = produced_by(e, v, "ReduceMean");
  if (n < 0 || e.at(n).attrs.integer("keepdims", 1) != 1 || !e.val(v).dims)
    return no_value;
  const auto axes =
      e.at(n).inputs.size() > 1 ? known_integers(e, e.at(n).inputs[1]) : e.at(n).attrs.integers("axes", {});
  const auto rank = static_cast<int64_t>(e.val(v).dims->size());
  const bool last = axes && axes->size() == 1 && ((*axes)[0] == -1 || (*axes)[0] == rank - 1);
  return last ? e.at(n).inputs[0] : no_value;
}

/// Returns x if `v` = x², written as Pow or Mul.
value_id root_of_square(const graph_editor& e, value_id v) {
  const node_id n = e.producer(v);
  if (n < 0)
    return no_value;
  const node& call = e.at(n);
  if (is_op(call, "Pow") && is_scalar(e, call.inputs[1], 2))
    return call.inputs[0];
  return is_op(call, "Mul") && call.inputs[0] == call.inputs[1] ? call.inputs[0] : no_value;
}

struct deviation {
  value_id source = no_value;
  double epsilon = 0;
};

/// Returns x and ε if `v` = √(mean(x²) + ε) over the last axis.
deviation root_mean_square(const graph_editor& e, value_id v) {
  const node_id root = produced_by(e, v, "Sqrt");
  const node_id sum = root < 0 ? -1 : produced_by(e, e.at(root).inputs[0], "Add");
  if (sum < 0)
    return {};
  for (size_t i : {1, 0}) {
    const auto epsilon = scalar_constant(e, e.at(sum).inputs[i]);
    const value_id square = mean_over_last(e, e.at(sum).inputs[1 - i]);
    if (epsilon && square != no_value)
      return {root_of_square(e, square), *epsilon};
  }
  return {};
}

/// Returns x and ε if node `n` computes x / √(mean(x²) + ε): as x / d, x · (1 / d) or x · Reciprocal(d).
deviation normalised(const graph_editor& e, node_id n) {
  const node& call = e.at(n);
  if (is_op(call, "Div")) {
    const deviation d = root_mean_square(e, call.inputs[1]);
    return d.source == call.inputs[0] ? d : deviation{};
  }
  for (size_t i : {0, 1}) {
    const node_id inverse = is_op(call, "Mul") ? e.producer(call.inputs[i]) : -1;
    if (inverse < 0)
      continue;
    value_id root = no_value;
    if (is_op(e.at(inverse), "Reciprocal"))
      root = e.at(inverse).inputs[0];
    else if (is_op(e.at(inverse), "Div") && is_scalar(e, e.at(inverse).inputs[0], 1))
      root = e.at(inverse).inputs[1];
    const deviation d = root == no_value ? deviation{} : root_mean_square(e, root);
    if (d.source != no_value && d.source == call.inputs[1 - i])
      return d;
  }
  return {};
}

/// Returns whether `v` is a vector as long as `x`'s last dim (leading dims of 1 allowed where it is constant).
bool is_last_dim_vector(const graph_editor& e, value_id v, value_id x) {
  if (v == no_value)
    return false;
  const auto &dims = e.val(v).dims, &of = e.val(x).dims;
  return dims && of && dims->size() == 1 && !of->empty() && dims->back() == of->back() &&
         e.val(v).type == e.val(x).type;
}

/// Returns the operand of binary node `n` that is not `v`.
value_id opposite(const node& n, value_id v) {
  return n.inputs[0] == v ? n.inputs[1] : n.inputs[0];
}

/// Turns x / rms(x) · weight into RMSNormalization; casts to float before and back after it are part of the operator.
bool fuse_rms(graph_editor& e, node_id n, deviation d) {
  value_id x = d.source, y = e.at(n).outputs[0];
  const node_id widen = produced_by(e, x, "Cast"), narrow = consumed_by(e, y, "Cast");
  if (widen >= 0 && narrow >= 0 && e.val(x).type == dtype::float32 &&
      e.val(e.at(widen).inputs[0]).type == e.val(e.at(narrow).outputs[0]).type) {
    x = e.at(widen).inputs[0];
    y = e.at(narrow).outputs[0];
  }
  const node_id product = e.used_once(y) ? consumed_by(e, y, "Mul") : -1;
  if (product < 0 || !has_row("RMSNormalization"))
    return false;
  const value_id weight = opposite(e.at(product), y);
  const auto epsilon = as_attribute(d.epsilon, e.val(x).type);
  if (!is_last_dim_vector(e, weight, x) || !epsilon)
    return false;
  attributes attrs;
  attrs.set("axis", int64_t{-1});
  attrs.set("epsilon", *epsilon);
  return e.replace(product, make_node(e.at(n).name + "+rms", "", "RMSNormalization", {x, weight},
                                      {e.at(product).outputs[0]}, std::move(attrs)));
}

/// Turns (x − mean) / deviation · weight + bias into LayerNormalization.
bool fuse_layer(graph_editor& e, node_id n, deviation d) {
  const node_id centre = produced_by(e, d.source, "Sub");
  if (centre < 0 || mean_over_last(e, e.at(centre).inputs[1]) != e.at(centre).inputs[0])
    return false;
  const value_id x = e.at(centre).inputs[0], y = e.at(n).outputs[0];
  const node_id product = e.used_once(y) ? consumed_by(e, y, "Mul") : -1;
  if (product < 0 || !is_last_dim_vector(e, opposite(e.at(product), y), x) || !has_row("LayerNormalization"))
    return false;
  const value_id weight = opposite(e.at(product), y), scaled = e.at(product).outputs[0];
  const node_id sum = e.used_once(scaled) ? consumed_by(e, scaled, "Add") : -1;
  const bool biased = sum >= 0 && is_last_dim_vector(e, opposite(e.at(sum), scaled), x);
  const auto epsilon = as_attribute(d.epsilon, e.val(x).type);
  if (!epsilon)
    return false;
  attributes attrs;
  attrs.set("axis", int64_t{-1});
  attrs.set("epsilon", *epsilon);
  std::vector<value_id> inputs{x, weight};
  if (biased)
    inputs.push_back(opposite(e.at(sum), scaled));
  const node_id last = biased ? sum : product;
  return e.replace(last, make_node(e.at(n).name + "+layer_norm", "", "LayerNormalization", std::move(inputs),
                                   {e.at(last).outputs[0]}, std::move(attrs)));
}

/// Returns operand `v` as a [C] weight if it is a constant for each channel of `x`, [N, C, …]; null if it is something
/// else.
weight_ptr channel_vector(const graph_editor& e, value_id v, value_id x) {
  if (v == no_value)
    return nullptr;
  const auto& w = e.val(v).constant;
  const auto& dims = e.val(x).dims;
  if (!w || !dims || dims->size() < 2 || !(*dims)[1].is_constant())
    return nullptr;
  const int64_t channels = (*dims)[1].constant();
  const size_t behind = dims->size() - 2; // dims of 1 that must follow C
  const bool fits = volume(w->dims) == channels && w->dims.size() > behind && w->dims.size() <= dims->size() &&
                    w->dims[w->dims.size() - 1 - behind] == channels;
  return fits ? derive_reshape(w, {channels}) : nullptr;
}

/// A constant per channel that node `n` (Mul or Add, −1 for none) applies to `y`; `neutral` everywhere if there is
/// none.
weight_ptr channel_operand(const graph_editor& e, node_id n, value_id y, value_id x, float neutral) {
  if (n >= 0)
    return same_dims(e, x, e.at(n).outputs[0]) ? channel_vector(e, opposite(e.at(n), y), x) : nullptr;
  tensor all(dtype::float32, {(*e.val(x).dims)[1].constant()});
  std::fill_n(all.mutable_data<float>(), all.size(), neutral);
  attributes to;
  to.set("to", static_cast<int64_t>(e.val(x).type));
  const weight_ptr w = weight::from_tensor(all);
  return e.val(x).type == dtype::float32 ? w : derive("Cast", {w}, to);
}

/// Reshape, InstanceNormalization, Reshape and, where they are there, Mul and Add of constants per channel.
bool fuse_group(graph_editor& e, node_id n) {
  const node& norm = e.at(n);
  const node_id split = produced_by(e, norm.inputs[0], "Reshape"), join = consumed_by(e, norm.outputs[0], "Reshape");
  if (split < 0 || join < 0 || !all_equal(e.val(norm.inputs[1]), 1) || !all_equal(e.val(norm.inputs[2]), 0))
    return false;
  const value_id x = e.at(split).inputs[0], y = e.at(join).outputs[0];
  const auto &grouped = e.val(norm.inputs[0]).dims, &plain = e.val(x).dims;
  if (!same_dims(e, x, y) || !grouped || grouped->size() < 3 || plain->size() < 3 || !((*grouped)[0] == (*plain)[0]) ||
      !(*grouped)[1].is_constant() || !(*plain)[1].is_constant())
    return false;
  node_id last = join;
  const auto follower = [&](std::string_view op) {
    const value_id out = e.at(last).outputs[0];
    const node_id next = e.used_once(out) ? consumed_by(e, out, op) : -1;
    return next >= 0 && channel_vector(e, opposite(e.at(next), out), x) ? next : -1;
  };
  const node_id product = follower("Mul");
  const weight_ptr scale = channel_operand(e, product, y, x, 1);
  last = product >= 0 ? product : join;
  const node_id sum = follower("Add");
  const weight_ptr bias = channel_operand(e, sum, e.at(last).outputs[0], x, 0);
  last = sum >= 0 ? sum : last;
  if (!scale || !bias)
    return false;
  attributes attrs;
  attrs.set("num_groups", (*grouped)[1].constant());
  attrs.set("epsilon", norm.attrs.real("epsilon", 1e-5f));
  const std::string name = norm.name + "+group_norm";
  const value_id s = e.add_constant(name + "/scale", scale), b = e.add_constant(name + "/bias", bias);
  return e.replace(last,
                   make_node(name, "", "GroupNormalization", {x, s, b}, {e.at(last).outputs[0]}, std::move(attrs)));
}

/// Instance or group norm `n` and the activation after it become one node.
bool fuse_end(graph_editor& e, node_id n) {
  const node& norm = e.at(n);
  const value_id y = norm.outputs[0];
  const node_id next = e.used_once(y) ? e.only_consumer(y) : -1;
  const auto act = activation_of(e, next, y);
  if (!act)
    return false;
  node fused =
      make_node(norm.name + suffix_of(*act), "troupe", norm.op_type, norm.inputs, {e.at(next).outputs[0]}, norm.attrs);
  set_activation(fused.attrs, *act);
  return e.replace(next, std::move(fused));
}

} // namespace

bool fuse_norms(graph_editor& e) {
  const bool groups = has_row("GroupNormalization");
  return each_node(e, [&](node_id n) {
    const bool by_instance = is_op(e.at(n), "InstanceNormalization");
    if (by_instance || is_op(e.at(n), "GroupNormalization"))
      return (groups && by_instance && fuse_group(e, n)) || fuse_end(e, n);
    if (!is_op(e.at(n), "Div") && !is_op(e.at(n), "Mul"))
      return false;
    const deviation d = normalised(e, n);
    return d.source != no_value && (fuse_layer(e, n, d) || fuse_rms(e, n, d));
  });
}

} // namespace troupe

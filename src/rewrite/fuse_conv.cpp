// Convolutions take in what follows them: BatchNormalization, a constant factor, and Add of a constant or of one per
// channel go into weights and bias (as weight recipes), residual Add and activation into troupe.Conv or
// troupe.ConvTranspose.
#include "rewrite/batch_norm.hpp"
#include "rewrite/epilogue.hpp"
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"

#include <cmath>

namespace troupe {
namespace {

bool is_convolution(const node& n) {
  const bool named = n.op_type == "Conv" || n.op_type == "ConvTranspose";
  return named && (n.domain.empty() || n.domain == "troupe");
}

/// Returns the weight of input `i`; null if the input is absent or no constant.
weight_ptr constant_of(const graph_editor& e, const node& n, size_t i) {
  const value_id v = input_of(n, i);
  return v == no_value ? nullptr : e.val(v).constant;
}

/// Returns the number of output channels, 0 where it is not known.
int64_t channels_of(const graph_editor& e, const node& n) {
  const auto& dims = e.val(n.outputs[0]).dims;
  return dims && dims->size() >= 3 && (*dims)[1].is_constant() ? (*dims)[1].constant() : 0;
}

/// Returns the position of the output channels among the weights' dims; nullopt if a scale cannot be folded in.
std::optional<size_t> channel_axis(const node& n) {
  if (n.op_type == "Conv")
    return 0;
  return n.attrs.integer("group", 1) == 1 ? std::optional<size_t>(1) : std::nullopt;
}

/// Puts conv `n` with new weights and bias in the place of `last`, which ends the folded nodes.
bool put(graph_editor& e, node_id n, node_id last, const weight_ptr& w, const weight_ptr& b,
         const std::string& suffix) {
  node fused = e.at(n);
  fused.name += suffix;
  fused.inputs.resize(std::max<size_t>(fused.inputs.size(), 3), no_value);
  if (w)
    fused.inputs[1] = e.add_constant(fused.name + "/weight", w);
  if (b)
    fused.inputs[2] = e.add_constant(fused.name + "/bias", b);
  fused.outputs = e.at(last).outputs;
  fused.outputs.resize(1);
  return e.replace(last, std::move(fused));
}

/// conv(x, W) + B, normalised: W' = W · s, B' = (B − mean) · s + shift with s = scale / √(variance + ε).
bool fold_batch_norm(graph_editor& e, node_id n, node_id norm) {
  const node &conv = e.at(n), &bn = e.at(norm);
  const weight_ptr w = constant_of(e, conv, 1);
  weight_ptr b = constant_of(e, conv, 2);
  const int64_t channels = channels_of(e, conv);
  const auto axis = channel_axis(conv);
  if (!w || !may_derive(*w) || !axis || channels == 0 || bn.inputs[0] != conv.outputs[0] ||
      (input_of(conv, 2) != no_value && (!b || !may_derive(*b))))
    return false;
  const auto scaling = scaling_of(e, bn, channels, w->type);
  if (!scaling)
    return false;
  const auto& [s, shift, mean] = *scaling;
  b = b ? derive("Sub", {b, mean}) : derive("Neg", {mean});
  shape column(w->dims.size(), 1);
  column[*axis] = channels;
  return put(e, n, norm, derive("Mul", {w, derive_reshape(s, column)}), derive("Add", {derive("Mul", {b, s}), shift}),
             "+bn");
}

/// (conv(x, W) + B) · c for a number c. Not in 16 bits, where the weights might leave the range.
bool fold_scale(graph_editor& e, node_id n, node_id product) {
  const node& conv = e.at(n);
  const auto scaled = scaled_by_constant(e, e.at(product).outputs[0]);
  const weight_ptr w = constant_of(e, conv, 1);
  const weight_ptr b = constant_of(e, conv, 2);
  const bool has_bias = input_of(conv, 2) != no_value;
  if (!scaled || scaled->source != conv.outputs[0] || !std::isfinite(scaled->scale) || !w || !may_derive(*w) ||
      !(set_of(dtype::float32, dtype::float64) & set_of(w->type)) || (has_bias && (!b || !may_derive(*b))))
    return false;
  tensor number(dtype::float64, {1});
  *number.mutable_data<double>() = scaled->scale;
  attributes to;
  to.set("to", static_cast<int64_t>(w->type));
  const weight_ptr c = derive("Cast", {weight::from_tensor(number)}, to);
  return put(e, n, product, derive("Mul", {w, c}), has_bias ? derive("Mul", {b, c}) : nullptr, "+scale");
}

/// Returns a vector of one element `count` times.
weight_ptr repeated(const weight_ptr& element, int64_t count) {
  return derive("Expand", {element, weight::from_tensor(tensor::of<int64_t>({1}, std::span(&count, 1)))});
}

/// conv(x, W) + B + c for a constant c, or one per channel.
bool fold_bias(graph_editor& e, node_id n, node_id sum) {
  const node &conv = e.at(n), &add = e.at(sum);
  const weight_ptr c = constant_of(e, add, add.inputs[0] == conv.outputs[0] ? 1 : 0);
  const weight_ptr b = constant_of(e, conv, 2);
  const int64_t channels = channels_of(e, conv);
  if (!c || channels == 0 || (input_of(conv, 2) != no_value && (!b || !may_derive(*b))) ||
      !same_dims(e, conv.outputs[0], add.outputs[0]))
    return false;
  const size_t rank = e.val(conv.outputs[0]).dims->size();
  // [C, 1, …] or [1, C, 1, …]: C must be rank − 2 places from the end.
  const bool same = volume(c->dims) == 1;
  const bool fits = same || (volume(c->dims) == channels && c->dims.size() >= rank - 1 && c->dims.size() <= rank &&
                             c->dims[c->dims.size() - (rank - 1)] == channels);
  if (!fits)
    return false;
  const weight_ptr flat = derive_reshape(c, {same ? 1 : channels});
  return put(e, n, sum, nullptr, b ? derive("Add", {b, flat}) : same ? repeated(flat, channels) : flat, "+bias");
}

/// Puts the fused operator in the place of `last`.
bool fuse_conv_with(graph_editor& e, node_id n, node_id last, value_id residual, const activation& act,
                    const std::string& suffix) {
  node fused = make_node(e.at(n).name + suffix, "troupe", e.at(n).op_type, e.at(n).inputs, {e.at(last).outputs[0]},
                         e.at(n).attrs);
  if (residual != no_value) {
    fused.inputs.resize(4, no_value);
    fused.inputs[3] = residual;
  }
  set_activation(fused.attrs, act);
  return e.replace(last, std::move(fused));
}

/// Takes in one follower of conv `n`; returns where the convolution is now, −1 where nothing follows that fits.
node_id fold_next(graph_editor& e, node_id n) {
  const value_id y = e.at(n).outputs[0];
  if (!e.used_once(y) || e.at(n).attrs.has("activation"))
    return -1;
  const node_id next = e.only_consumer(y);
  const bool plain = e.at(n).domain.empty(), has_residual = input_of(e.at(n), 3) != no_value;
  if (plain && is_op(e.at(next), "BatchNormalization") && fold_batch_norm(e, n, next))
    return next;
  if (plain && fold_scale(e, n, next))
    return next;
  if (plain && is_op(e.at(next), "Add") && fold_bias(e, n, next))
    return next;
  if (const value_id residual = residual_of(e, next, y); residual != no_value && !has_residual)
    return fuse_conv_with(e, n, next, residual, {}, "+add") ? next : -1;
  const auto act = activation_of(e, next, y);
  return act && fuse_conv_with(e, n, next, no_value, *act, suffix_of(*act)) ? next : -1;
}

} // namespace

bool fuse_conv(graph_editor& e) {
  bool changed = false;
  for (node_id n = 0; n < static_cast<node_id>(e.node_count()); ++n) {
    if (!e.alive(n) || !is_convolution(e.at(n)) || !(types::floats & set_of(e.val(e.at(n).outputs[0]).type)))
      continue;
    for (node_id at = fold_next(e, n); at >= 0; at = fold_next(e, at))
      changed = true;
  }
  return changed;
}

} // namespace troupe

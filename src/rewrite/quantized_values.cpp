#include "rewrite/quantized_values.hpp"

#include "ops/quantization.hpp"
#include "rewrite/match.hpp"

#include <algorithm>

namespace troupe {
namespace {

bool is_single(const graph_editor& e, value_id v) {
  return v == no_value || (e.val(v).dims && volume(*e.val(v).dims).is(1));
}

bool is_byte(dtype type) {
  return (byte_types & set_of(type)) != dtype_set{};
}

bool is_step(const weight& w, std::string_view op_type) {
  return w.step && w.step->name == op_type && w.step->domain.empty();
}

/// Returns whether matrix `w` is another one, transposed.
bool is_transposed(const weight& w) {
  return is_step(w, "Transpose") && w.step_inputs[0] &&
         permutation_of(node{.attrs = w.step_attributes}, w.dims.size()) == std::vector<int64_t>{1, 0};
}

} // namespace

std::optional<quantised_tensor> dequantised_tensor(const graph_editor& e, value_id v) {
  const node_id n = produced_by(e, v, "DequantizeLinear");
  if (n < 0 || !e.val(v).dims || e.val(v).type != dtype::float32)
    return std::nullopt;
  const node& dequantize = e.at(n);
  const quantised_tensor q{dequantize.inputs[0], input_of(dequantize, 1), input_of(dequantize, 2)};
  const bool fits = is_byte(e.val(q.elements).type) && q.scale != no_value && e.val(q.scale).type == dtype::float32 &&
                    is_single(e, q.scale) && is_single(e, q.zero) && dequantize.attrs.integer("block_size", 0) == 0;
  return fits ? std::optional(q) : std::nullopt;
}

std::optional<quantised_weight> dequantised_weight(const graph_editor& e, value_id v, int64_t axis, bool matrix) {
  weight_ptr w = e.val(v).constant;
  if (!w || w->type != dtype::float32 || (matrix && w->dims.size() != 2))
    return std::nullopt;
  const bool transposed = matrix && is_transposed(*w);
  if (transposed) {
    w = w->step_inputs[0];
    axis = 1 - axis;
  }
  if (!is_step(*w, "DequantizeLinear") || !is_byte(w->step_inputs[0]->type) ||
      w->step_attributes.integer("block_size", 0) != 0)
    return std::nullopt;
  quantised_weight q{w->step_inputs[0], w->step_inputs[1], w->step_inputs.size() > 2 ? w->step_inputs[2] : nullptr};
  const auto rank = static_cast<int64_t>(w->dims.size());
  const int64_t own = w->step_attributes.integer("axis", 1);
  const bool single = volume(q.scale->dims) == 1;
  if (q.scale->type != dtype::float32 || (!single && (own < 0 ? own + rank : own) != axis) ||
      (q.zero && volume(q.zero->dims) != volume(q.scale->dims)))
    return std::nullopt;
  if (transposed)
    q.elements = derive("Transpose", {q.elements});
  return q;
}

std::optional<quantised_tensor> quantisation_of(graph_editor& e, node_id n) {
  if (n < 0 || !is_op(e.at(n), "QuantizeLinear"))
    return std::nullopt;
  const node& quantize = e.at(n);
  quantised_tensor q{quantize.outputs[0], input_of(quantize, 1), input_of(quantize, 2)};
  const dtype type = e.val(q.elements).type;
  const bool fits = is_byte(type) && e.val(quantize.inputs[0]).type == dtype::float32 && q.scale != no_value &&
                    e.val(q.scale).type == dtype::float32 && is_single(e, q.scale) && is_single(e, q.zero) &&
                    quantize.attrs.integer("block_size", 0) == 0 && quantize.attrs.integer("precision", 0) == 0;
  if (!fits)
    return std::nullopt;
  if (q.zero == no_value && type == dtype::int8) {
    tensor zero(dtype::int8, {});
    *zero.mutable_data<int8_t>() = 0;
    q.zero = e.add_constant(quantize.name + "/zero", std::move(zero));
  }
  return q;
}

bool same_quantisation(const graph_editor& e, const quantised_tensor& a, const quantised_tensor& b) {
  const auto same = [&](value_id x, value_id y, double absent) {
    if (x == y)
      return true;
    const auto left = x == no_value ? std::optional(absent) : scalar_constant(e, x);
    const auto right = y == no_value ? std::optional(absent) : scalar_constant(e, y);
    return left && right && *left == *right;
  };
  return e.val(a.elements).type == e.val(b.elements).type && same(a.scale, b.scale, 1) && same(a.zero, b.zero, 0);
}

bool is_kept_recipe(const graph& g, const node& n) {
  if (!n.domain.empty() || n.inputs.empty() || n.inputs[0] == no_value)
    return false;
  const value& in = g.values[n.inputs[0]];
  if (n.op_type == "DequantizeLinear")
    return is_byte(in.type) && in.dims && in.dims->size() >= 2;
  return n.op_type == "Transpose" && in.constant && is_step(*in.constant, "DequantizeLinear");
}

} // namespace troupe

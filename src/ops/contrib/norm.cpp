// Normalisations of exported language models: SimplifiedLayerNormalization (ai.onnx), SkipLayerNormalization,
// SkipSimplifiedLayerNormalization, EmbedLayerNormalization and QEmbedLayerNormalization (com.microsoft).
//
//   SimplifiedLayerNormalization: RMSNormalization, whose factor 1 / √(mean of x² + epsilon) is output 1
//   Skip…: the norm of sum = input + skip (+ bias), which is output 3; skip is [batch or 1, sequence, hidden] or
//     [sequence, hidden]
//   EmbedLayerNormalization: the norm of sum = word[ids] + position[p] (+ segment[segment ids]), output 2; output 1
//     counts each row's mask
//   QEmbedLayerNormalization: the same of quantised tables, scale and bias, each with a scale and a zero point
#include "ops/expansion.hpp"
#include "ops/operand.hpp"

namespace troupe {
namespace {

constexpr float usual_epsilon = 1e-12f; // of the operators of com.microsoft

float epsilon_of(const expansion& e) {
  return e.attrs().real("epsilon", usual_epsilon);
}

/// Returns 1 / √(mean of x² over the axes from `axis` on + epsilon) in float32.
value_id rms_factor(expansion& e, value_id x, size_t axis, float epsilon) {
  std::vector<int64_t> axes;
  for (size_t i = axis; i < e.rank(x); ++i)
    axes.push_back(static_cast<int64_t>(i));
  const value_id wide = e.cast(x, dtype::float32);
  const value_id mean = e.add("ReduceMean", {e.add("Mul", {wide, wide}), e.known(to_symbolic(axes))});
  return e.add("Reciprocal", {e.add("Sqrt", {e.add("Add", {mean, e.scalar(dtype::float32, epsilon)})})});
}

void expand_simplified(expansion& e) {
  const value_id x = e.input(0);
  const float epsilon = e.attrs().real("epsilon", 1e-5f);
  const auto axis = static_cast<int64_t>(e.call().axis("axis", -1, e.rank(x)));
  // The result has the scale's type: float16 operands may be normalised with a float32 scale and the other way round.
  const value_id scale = e.input(1), like = e.type(scale) == e.type(x) ? x : e.cast(x, e.type(scale));
  e.set_output(0, e.add("RMSNormalization", {like, scale}, attributes_of({{"axis", axis}, {"epsilon", epsilon}})));
  if (e.has_output(1))
    e.set_output(1, rms_factor(e, x, static_cast<size_t>(axis), epsilon));
}

/// Sets the outputs of LayerNormalization over the last axis, those beside the first in float32.
void set_layer_norm(expansion& e, value_id x, value_id scale, value_id bias, bool statistics) {
  const auto attrs = attributes_of({{"axis", int64_t{-1}}, {"epsilon", epsilon_of(e)}});
  if (bias == no_value) {
    const symbolic_shape dims = e.dims(scale);
    if (!is_constant(dims))
      fail(errc::unsupported, "the dims of the scale must be known where there is no bias");
    bias = e.add("Expand", {e.scalar(e.type(scale), 0), e.known(dims)});
  }
  const auto made = e.add_all("LayerNormalization", {x, scale, bias}, statistics ? 3 : 1, attrs);
  for (size_t i = 0; i < made.size(); ++i)
    e.set_output(i, made[i]);
}

/// Returns input + skip (+ bias). A skip may have other names for the dims of the input: then sizes must be equal once
/// they are known.
value_id skip_sum(expansion& e, size_t bias) {
  value_id sum = e.add("Add", {e.input(0), e.input(1)});
  const symbolic_shape dims = e.dims(e.input(0));
  if (e.dims(sum) != dims) {
    require_same_dims(e.dims(sum), dims, "the input with its skip, and the input");
    sum = e.reshape(sum, dims);
  }
  return e.plus_input(sum, bias);
}

void expand_skip_layer_norm(expansion& e) {
  const value_id sum = skip_sum(e, 4);
  set_layer_norm(e, sum, e.input(2), e.input(3), e.has_output(1) || e.has_output(2));
  e.set_output(3, sum);
}

void expand_skip_simplified(expansion& e) {
  const value_id sum = skip_sum(e, 3);
  const auto attrs = attributes_of({{"axis", int64_t{-1}}, {"epsilon", epsilon_of(e)}});
  e.set_output(0, e.add("RMSNormalization", {sum, e.input(2)}, attrs));
  if (e.has_output(1))
    e.set_output(1, e.add("ReduceMean", {e.cast(sum, dtype::float32), e.known({-1})}));
  if (e.has_output(2))
    e.set_output(2, rms_factor(e, sum, e.rank(sum) - 1, epsilon_of(e)));
  e.set_output(3, sum);
}

/// Sets output 1: the sum of each row of the mask, input 7, or zeros.
void set_mask_counts(expansion& e, const dim& batch) {
  if (!e.has_output(1))
    return;
  const auto flat = attributes_of({{"keepdims", int64_t{0}}});
  e.set_output(1, e.has_input(7) ? e.add("ReduceSum", {e.input(7), e.known({1})}, flat)
                                 : e.add("Expand", {e.scalar(dtype::int32, 0), e.known({batch})}));
}

/// Inputs: ids, segment ids?, word, position and segment? tables, scale, bias, mask?, position ids?.
void expand_embed(expansion& e) {
  const value_id ids = e.input(0);
  const symbolic_shape dims = e.dims(ids);
  if (dims.size() != 2)
    fail(errc::invalid_model, "the ids must be [batch, sequence], not {}", to_string(dims));
  const value_id words = e.add("Gather", {e.input(2), ids});
  const value_id positions = e.has_input(8) ? e.input(8) : e.range(dims[1]);
  value_id sum = e.add("Add", {words, e.add("Gather", {e.input(3), positions})});
  if (e.has_input(1) != e.has_input(4))
    fail(errc::invalid_model, "segment ids and their table must both be there, or neither");
  if (e.has_input(1))
    sum = e.add("Add", {sum, e.add("Gather", {e.input(4), e.input(1)})});
  set_layer_norm(e, sum, e.input(5), e.input(6), false);
  set_mask_counts(e, dims[0]);
  e.set_output(2, sum);
}

/// Returns real numbers of quantised ones; `table` counts word, position and segment tables, scale and bias.
value_id real_part(expansion& e, value_id codes, size_t table) {
  constexpr size_t scales = 8, zeros = 13;
  const auto single = [&](size_t i) { return e.reshape(e.input(i), {}); };
  return e.add("DequantizeLinear", {codes, single(scales + table), single(zeros + table)});
}

/// Inputs: ids, segment ids?, word, position and segment? tables, scale, bias, mask?, then their scales and zero
/// points.
void expand_quantized_embed(expansion& e) {
  const symbolic_shape dims = e.dims(e.input(0), 2);
  if (e.has_input(1) != e.has_input(4))
    fail(errc::invalid_model, "segment ids and their table must both be there, or neither");
  const auto row = [&](size_t table, value_id ids) {
    return real_part(e, e.add("Gather", {e.input(2 + table), ids}), table);
  };
  value_id sum = e.add("Add", {row(0, e.input(0)), row(1, e.range(dims[1]))});
  if (e.has_input(1))
    sum = e.add("Add", {sum, row(2, e.input(1))});
  set_layer_norm(e, sum, real_part(e, e.input(5), 3), real_part(e, e.input(6), 4), false);
  set_mask_counts(e, dims[0]);
}

constexpr auto contrib_norm_rows = std::to_array<op_def>({
    composition_row("SimplifiedLayerNormalization", 1, expand_simplified,
                    {.inputs = {2, 2}, .max_outputs = 2, .types = types::floats}),
    composition_row("SkipLayerNormalization", 1, expand_skip_layer_norm,
                    {.domain = microsoft, .inputs = {3, 5}, .max_outputs = 4, .types = types::floats}),
    composition_row("SkipSimplifiedLayerNormalization", 1, expand_skip_simplified,
                    {.domain = microsoft, .inputs = {3, 4}, .max_outputs = 4, .types = types::floats}),
    composition_row("EmbedLayerNormalization", 1, expand_embed,
                    {.domain = microsoft, .inputs = {1, 9}, .max_outputs = 3, .types = set_of(dtype::int32)}),
    composition_row("QEmbedLayerNormalization", 1, expand_quantized_embed,
                    {.domain = microsoft, .inputs = {1, 18}, .max_outputs = 2, .types = set_of(dtype::int32)}),
});

} // namespace

extern constinit const op_table contrib_norm_ops = contrib_norm_rows;

} // namespace troupe

// Quantised operators of com.microsoft: real arithmetic between DequantizeLinear and QuantizeLinear, and integer
// products with scales.
//
//   QLinearX(x, scale, zero, …, y scale, y zero) = quantised(X(dequantised(x))); zero points that are left out are 0.
//     Ties are decided as by ONNX Runtime: sums, products and averages are rounded with y zero added, so that halves go
//     to even results
//   MatMulIntegerToFloat: (A − a zero) · (B − b zero) · a scale · b scale + bias; DynamicQuantizeMatMul: the same of
//     quantised A
//   QGemm: y = alpha · a scale · b scale · ((A − a zero) · (B − b zero) + C); if y has a zero point, scaled once, by
//     that over y scale, and rounded
//   QLinearMul: ⌊(A − a zero) · (B − b zero) · (a scale · b scale / y scale) + y zero⌉
//   QLinearGlobalAveragePool: ⌊Σ (x − x zero) · (x scale / (y scale · count))⌉ + y zero
//   QLinearConv: that of ai.onnx, perhaps with the channels last in x and y
//   QLinearSoftmax: quantised by a scale of 1 / ⌊1 / y scale⌋
//   DynamicQuantizeLSTM: LSTM with dequantised weights, which are transposed: [directions, operands, gates]. X is
//     quantised once, over all steps, the state at each step
//   QuantizeLinear divides in float32
#include "ops/expansion.hpp"
#include "ops/window.hpp"

#include <algorithm>
#include <numeric>

namespace troupe {
namespace {

constexpr dtype_set quantized_bytes = set_of(dtype::int8, dtype::uint8);

/// Returns real values of operand `i`, whose scale and zero point follow it.
value_id real_operand(expansion& e, size_t i) {
  return e.add("DequantizeLinear", {e.input(i), e.input(i + 1), e.input(i + 2)});
}

/// Makes output 0 of real values; its scale is operand `scale`, and its zero point the next, of `type` where it is left
/// out.
void set_quantized(expansion& e, value_id y, size_t scale, dtype type) {
  const value_id zero = e.has_input(scale + 1) ? e.input(scale + 1) : e.scalar(type, 0);
  e.set_output(0, e.add("QuantizeLinear", {y, e.input(scale), zero}));
}

/// Makes output 0 of ⌊y⌉ + `zero`.
void set_rounded(expansion& e, value_id y, value_id zero) {
  e.set_output(0, e.add("QuantizeLinear", {y, e.scalar(dtype::float32, 1), zero}));
}

/// Makes output 0 of ⌊y + zero point⌉; operand `zero` is that point, of `type` where it is left out.
void set_rounded_sum(expansion& e, value_id y, size_t zero, dtype type) {
  const value_id sum = e.has_input(zero) ? e.add("Add", {y, e.cast(e.input(zero), dtype::float32)}) : y;
  set_rounded(e, sum, e.scalar(type, 0));
}

/// Returns operand `i` as whole numbers, with zero point `zero` taken off.
value_id centred(expansion& e, size_t i, size_t zero) {
  return e.add("DequantizeLinear", {e.input(i), e.scalar(dtype::float32, 1), e.input(zero)});
}

void expand_add(expansion& e) {
  const value_id sum = e.add("Add", {real_operand(e, 0), real_operand(e, 3)});
  set_rounded_sum(e, e.add("Div", {sum, e.input(6)}), 7, e.type(e.input(0)));
}

void expand_mul(expansion& e) {
  const value_id scale = e.add("Div", {e.add("Mul", {e.input(1), e.input(4)}), e.input(6)});
  const value_id product = e.add("Mul", {centred(e, 0, 2), centred(e, 3, 5)});
  set_rounded_sum(e, e.add("Mul", {product, scale}), 7, e.type(e.input(0)));
}

template <const char* Op>
void expand_unary(expansion& e) {
  set_quantized(e, e.add(Op, {real_operand(e, 0)}, e.attrs()), 3, e.type(e.input(0)));
}

constexpr char sigmoid_name[] = "Sigmoid", leaky_relu_name[] = "LeakyRelu";

/// Makes output 0 of probabilities: 1 has ⌊1 / scale⌋ steps.
void set_probabilities(expansion& e, value_id p) {
  const value_id steps = e.add("Floor", {e.add("Div", {e.scalar(dtype::float32, 1), e.input(3)})});
  const value_id zero = e.has_input(4) ? e.input(4) : e.scalar(e.type(e.input(0)), 0);
  e.set_output(0, e.add("QuantizeLinear", {p, e.add("Reciprocal", {steps}), zero}));
}

/// Until opset 12 the axes from `axis` on are one.
void expand_softmax(expansion& e) {
  const bool joined = e.attrs().integer("opset") < 13;
  const value_id x = real_operand(e, 0);
  const symbolic_shape d = e.dims(x);
  const size_t axis = e.call().axis("axis", -1, d.size());
  if (!joined)
    return set_probabilities(e, e.add("Softmax", {x}, attributes_of({{"axis", static_cast<int64_t>(axis)}})));
  const auto all = std::span<const dim>(d);
  const value_id rows = e.reshape(x, {volume(all.first(axis)), volume(all.subspan(axis))});
  const value_id y = e.add("Softmax", {rows}, attributes_of({{"axis", int64_t{1}}}));
  set_probabilities(e, e.reshape(y, d));
}

void expand_where(expansion& e) {
  set_quantized(e, e.add("Where", {e.input(0), real_operand(e, 1), real_operand(e, 4)}), 7, e.type(e.input(1)));
}

void expand_concat(expansion& e) {
  const size_t count = e.call().input_count();
  if (count % 3 != 2)
    fail(errc::invalid_model, "{} inputs are not a scale, a zero point and operands with theirs", count);
  std::vector<value_id> parts;
  for (size_t i = 2; i < count; i += 3)
    parts.push_back(real_operand(e, i));
  const value_id y = e.add("Concat", std::move(parts), attributes_of({{"axis", e.attrs().integer("axis")}}));
  e.set_output(0, e.add("QuantizeLinear", {y, e.input(0), e.input(1)}));
}

/// Returns `v` with its channels second (`last` says that they are last), or the other way round.
value_id move_channels(expansion& e, value_id v, bool to_second) {
  std::vector<int64_t> order(e.rank(v));
  std::iota(order.begin(), order.end(), 0);
  if (order.size() > 2 && to_second)
    std::rotate(order.begin() + 1, order.end() - 1, order.end());
  else if (order.size() > 2)
    std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return e.transpose(v, std::move(order));
}

/// Returns `x` with the padding around it that windows of a pool cover, and takes that from the pool's attributes.
value_id padded_for(expansion& e, value_id x, attributes& pool) {
  const symbolic_shape dims = e.dims(x);
  const window_spec window = parse_window(pool, pool.integers("kernel_shape"));
  if (window.mode != auto_pad::notset || dims.size() != window.rank() + 2)
    return x;
  symbolic_shape before(dims.size(), 0), after = before;
  for (size_t axis = 0; axis < window.rank(); ++axis) {
    const dim& in = dims[axis + 2];
    before[axis + 2] = window.pads[axis];
    after[axis + 2] = (window_output(window, axis, in) - 1) * dim(window.strides[axis]) + dim(window.extent(axis)) -
                      in - dim(window.pads[axis]);
  }
  before.insert(before.end(), after.begin(), after.end());
  pool.erase("pads");
  pool.erase("ceil_mode");
  return e.add("Pad", {x, e.known(before)});
}

void expand_average_pool(expansion& e) {
  const bool last = e.attrs().integer("channels_last", 0) != 0;
  attributes own = e.attrs();
  own.erase("channels_last");
  value_id x = real_operand(e, 0);
  if (last)
    x = move_channels(e, x, true);
  // ONNX Runtime divides by the whole kernel, even where that reaches beyond the padding. AveragePool of ai.onnx does
  // not.
  if (own.integer("count_include_pad", 0) != 0 && own.integer("ceil_mode", 0) != 0)
    x = padded_for(e, x, own);
  const value_id y = e.add("Div", {e.add("AveragePool", {x}, std::move(own)), e.input(3)});
  set_rounded_sum(e, last ? move_channels(e, y, false) : y, 4, e.type(e.input(0)));
}

void expand_global_average_pool(expansion& e) {
  const symbolic_shape d = e.dims(e.input(0));
  const size_t channels = e.attrs().integer("channels_last", 0) != 0 ? d.size() - 1 : 1;
  if (d.size() < 3)
    fail(errc::invalid_model, "{} has no axes to pool", to_string(d));
  std::vector<int64_t> axes;
  dim count = 1;
  for (size_t i = 1; i < d.size(); ++i)
    if (i != channels) {
      axes.push_back(static_cast<int64_t>(i));
      count = count * d[i];
    }
  const tensor listed = tensor::of<int64_t>({std::ssize(axes)}, axes);
  const value_id sums = e.add("ReduceSum", {centred(e, 0, 2), e.constant(listed)});
  const value_id divisor = e.add("Mul", {e.input(3), e.cast(e.known_scalar(count), dtype::float32)});
  const value_id y = e.add("Mul", {sums, e.add("Div", {e.input(1), divisor})});
  set_rounded(e, y, e.has_input(4) ? e.input(4) : e.scalar(e.type(e.input(0)), 0));
}

void expand_qlinear_conv(expansion& e) {
  attributes own = e.attrs();
  const bool last = own.integer("channels_last", 0) != 0;
  own.erase("channels_last");
  std::vector<value_id> inputs;
  for (size_t i = 0; i < e.call().input_count(); ++i)
    inputs.push_back(e.input(i));
  if (last)
    inputs[0] = move_channels(e, inputs[0], true);
  const value_id y = e.add("QLinearConv", std::move(inputs), std::move(own));
  e.set_output(0, last ? move_channels(e, y, false) : y);
}

/// Returns weights [directions, gates, operands] in real numbers, of codes [directions, operands, gates] at input
/// `codes` and of scales and zero points by direction, or by direction and gate, at `scale` and after it.
value_id lstm_weights(expansion& e, size_t codes, size_t scale) {
  const auto aligned = [&](size_t i) {
    symbolic_shape d = e.dims(e.input(i));
    if (d.empty() || d.size() > 2)
      fail(errc::invalid_model, "scales or zero points {} are not by direction or gate", to_string(d));
    return e.reshape(e.input(i), {d[0], 1, d.size() == 2 ? d[1] : dim(1)});
  };
  const auto real = [&](value_id v) { return e.cast(v, dtype::float32); };
  const value_id centred = e.add("Sub", {real(e.input(codes)), real(aligned(scale + 1))});
  e.dims(e.input(codes), 3);
  return e.transpose(e.add("Mul", {centred, aligned(scale)}), {0, 2, 1});
}

/// Returns X, 0 after the last step of the longest sequence.
value_id counted_steps(expansion& e) {
  const symbolic_shape d = e.dims(e.input(0), 3);
  if (!e.has_input(4))
    return e.input(0);
  const value_id longest = e.add("ReduceMax", {e.cast(e.input(4), dtype::int64)});
  const value_id counts = e.add("Less", {e.reshape(e.range(d[0]), {d[0], 1, 1}), longest});
  return e.add("Where", {counts, e.input(0), e.scalar(e.type(e.input(0)), 0)});
}

void expand_dynamic_lstm(expansion& e) {
  for (const size_t i : {8, 9, 10, 11})
    if (!e.has_input(i))
      fail(errc::invalid_model, "input {}, a scale or zero point of the weights, is missing", i);
  attributes own = e.attrs();
  own.set("quantized_state", int64_t{1});
  const auto codes = e.add_all("DynamicQuantizeLinear", {counted_steps(e)}, 3);
  const value_id x = e.add("DequantizeLinear", {codes[0], codes[1], codes[2]});
  const auto made = e.add_all(
      "LSTM",
      {x, lstm_weights(e, 1, 8), lstm_weights(e, 2, 10), e.input(3), e.input(4), e.input(5), e.input(6), e.input(7)}, 3,
      std::move(own));
  for (size_t i = 0; i < 3; ++i)
    e.set_output(i, made[i]);
}

void expand_nhwc_max_pool(expansion& e) {
  const value_id y = e.add("MaxPool", {move_channels(e, e.input(0), true)}, e.attrs());
  e.set_output(0, move_channels(e, y, false));
}

/// Returns the product in real numbers: operands, scales and zero points are values, perhaps no_value for the latter.
value_id scaled_product(expansion& e, value_id a, value_id b, value_id scale, value_id a_zero, value_id b_zero) {
  const value_id sums = e.add("MatMulInteger", {a, b, a_zero, b_zero});
  return e.add("Mul", {e.cast(sums, e.type(scale)), scale});
}

void expand_matmul_to_float(expansion& e) {
  const value_id scale = e.add("Mul", {e.input(2), e.input(3)});
  e.set_output(0, e.plus_input(scaled_product(e, e.input(0), e.input(1), scale, e.input(4), e.input(5)), 6));
}

void expand_dynamic_matmul(expansion& e) {
  const auto a = e.add_all("DynamicQuantizeLinear", {e.input(0)}, 3);
  const value_id scale = e.add("Mul", {a[1], e.input(2)});
  e.set_output(0, e.plus_input(scaled_product(e, a[0], e.input(1), scale, a[2], e.input(3)), 4));
}

void expand_qgemm(expansion& e) {
  const auto operand = [&](size_t i, const char* transposes) {
    return e.attrs().integer(transposes, 0) != 0 ? e.transpose(e.input(i), {1, 0}) : e.input(i);
  };
  const value_id products =
      e.add("MatMulInteger", {operand(0, "transA"), operand(3, "transB"), e.input(2), e.input(5)});
  const value_id sums = e.plus_input(products, 6);
  if (e.has_input(7) != e.has_input(8))
    fail(errc::invalid_model, "the result's scale and zero point must both be there, or neither");
  value_id scale = e.input(1);
  if (const float alpha = e.attrs().real("alpha", 1); alpha != 1)
    scale = e.add("Mul", {scale, e.scalar(e.type(scale), alpha)});
  scale = e.add("Mul", {scale, e.input(4)});
  if (e.has_input(7))
    scale = e.add("Div", {scale, e.input(7)});
  const value_id y = e.add("Mul", {e.cast(sums, e.type(scale)), scale});
  if (e.has_input(8))
    set_rounded(e, y, e.input(8));
  else
    e.set_output(0, y);
}

void expand_quantize(expansion& e) {
  const auto wide = [&](size_t i) {
    return e.type(e.input(1)) == dtype::float16 ? e.cast(e.input(i), dtype::float32) : e.input(i);
  };
  e.set_output(0, e.add("QuantizeLinear", {wide(0), wide(1), e.input(2)}, e.attrs()));
}

constexpr char dequantize_name[] = "DequantizeLinear";

constexpr op_def quantized_row(std::string_view name, operand_range inputs, void (*expand)(expansion&),
                               dtype_set types = quantized_bytes) {
  return composition_row(name, 1, expand, {.domain = microsoft, .inputs = inputs, .types = types});
}

constexpr auto contrib_quantized_rows = std::to_array<op_def>({
    quantized_row("DequantizeLinear", {2, 3}, expand_same<dequantize_name>, types::fixed_size | types::small_ints),
    composition_row("DynamicQuantizeLSTM", 1, expand_dynamic_lstm,
                    {.domain = microsoft,
                     .inputs = {3, 12},
                     .max_outputs = 3,
                     .types = set_of(dtype::float32),
                     .first_output_optional = true}),
    quantized_row("DynamicQuantizeMatMul", {3, 5}, expand_dynamic_matmul, set_of(dtype::float32)),
    quantized_row("MatMulIntegerToFloat", {4, 7}, expand_matmul_to_float),
    quantized_row("NhwcMaxPool", {1, 1}, expand_nhwc_max_pool),
    quantized_row("QGemm", {5, 9}, expand_qgemm),
    quantized_row("QLinearAdd", {2, 8}, expand_add),
    quantized_row("QLinearAveragePool", {2, 5}, expand_average_pool),
    quantized_row("QLinearConcat", {5, 255}, expand_concat, set_of(dtype::float32)),
    quantized_row("QLinearConv", {8, 9}, expand_qlinear_conv),
    quantized_row("QLinearGlobalAveragePool", {2, 5}, expand_global_average_pool),
    quantized_row("QLinearLeakyRelu", {2, 5}, expand_unary<leaky_relu_name>),
    quantized_row("QLinearMul", {2, 8}, expand_mul),
    quantized_row("QLinearSigmoid", {2, 5}, expand_unary<sigmoid_name>),
    quantized_row("QLinearSoftmax", {2, 5}, expand_softmax),
    quantized_row("QLinearWhere", {9, 9}, expand_where, set_of(dtype::boolean)),
    quantized_row("QuantizeLinear", {2, 3}, expand_quantize, types::floats | set_of(dtype::int32)),
});

} // namespace

extern constinit const op_table contrib_quantized_ops = contrib_quantized_rows;

} // namespace troupe

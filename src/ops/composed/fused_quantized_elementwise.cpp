// An elementwise chain whose operands are dequantised first and whose result is quantised, produced by fusion:
//
//   y = program(x₀, x₁, …)      of bytes: x = (byte − zero) · scale      quantised: saturate(⌊y / y_scale⌉ + y_zero)
//
// Inputs: three for each of the program's (x, scale?, zero?), then y_scale? and y_zero?. An x with a scale is uint8 or
// int8, others are float32; scales and zero points are single elements. The result has y_zero's type (uint8 without),
// or is float32 if there is no y_scale. Attributes: `operands`, how many the program has, and those of
// troupe.Elementwise (fused_elementwise.hpp).
#include "ops/composed/fused_elementwise.hpp"
#include "ops/families.hpp"
#include "ops/operand.hpp"
#include "ops/quantization.hpp"
#include "ops/registry.hpp"

namespace troupe {
namespace {

const op_def& newest_row(std::string_view domain, std::string_view name) {
  const op_def* def = find_op(domain, name, newest_opset(domain));
  expects(def != nullptr, "the operator table lacks an elementwise operator");
  return *def;
}

size_t operands_of(const attributes& attrs, size_t inputs) {
  const int64_t count = attrs.integer("operands");
  if (count < 1 || count > static_cast<int64_t>(inputs) || 3 * (count - 1) >= static_cast<int64_t>(inputs))
    fail(errc::invalid_model, "{} inputs are not {} operands with their scales and zero points", inputs, count);
  return static_cast<size_t>(count);
}

void check_operand(const infer_context& c, size_t x) {
  if (!c.has_input(x))
    fail(errc::invalid_model, "operand {} is absent", x / 3);
  if (c.has_input(x + 1))
    require_bytes(c.type(x));
  if (c.has_input(x + 1) ? c.type(x + 1) != dtype::float32 : c.type(x) != dtype::float32 || c.has_input(x + 2))
    fail(errc::invalid_model, "operand {} is neither float32 nor bytes with a float32 scale", x / 3);
  require_zero_point(c, x + 2, x);
}

void infer_quantized_chain(infer_context& c) {
  const size_t count = operands_of(c.attrs(), c.input_count()), y_scale = 3 * count, y_zero = y_scale + 1;
  parse_elementwise(c.attrs(), count);
  symbolic_shape dims;
  for (size_t i = 0; i < count; ++i) {
    check_operand(c, 3 * i);
    dims = broadcast(dims, c.dims(3 * i));
  }
  if (c.has_input(y_zero) && !c.has_input(y_scale))
    fail(errc::invalid_model, "the result has a zero point, but no scale");
  const dtype quantised = c.has_input(y_zero) ? c.type(y_zero) : dtype::uint8;
  if (c.has_input(y_scale)) {
    require_bytes(quantised);
    if (c.type(y_scale) != dtype::float32)
      fail(errc::invalid_model, "the result's scale is {}, not float32", to_string(c.type(y_scale)));
  }
  c.set_output(0, c.has_input(y_scale) ? quantised : dtype::float32, std::move(dims));
}

/// Runs DequantizeLinear or QuantizeLinear on input `x` of the call, whose scale and zero point are `scale` and the
/// next.
void convert_by(std::string_view op, const kernel_context& c, const const_view& x, size_t scale, mutable_view y) {
  const std::array<const_view, 3> in{x, c.input(scale), c.has_input(scale + 1) ? c.input(scale + 1) : const_view{}};
  std::array<mutable_view, 1> out{y};
  const attributes none;
  kernel_context call(none, in, out);
  newest_row("", op).reference(call);
}

void quantized_chain(kernel_context& c) {
  const size_t count = operands_of(c.attrs(), c.input_count()), y_scale = 3 * count;
  std::vector<tensor> copies(count);
  std::vector<const_view> operands;
  for (size_t i = 0; i < count; ++i) {
    const const_view& x = c.input(3 * i);
    operands.push_back(x);
    if (!c.has_input(3 * i + 1))
      continue;
    copies[i] = tensor(dtype::float32, shape(x.dims.begin(), x.dims.end()));
    convert_by("DequantizeLinear", c, x, 3 * i + 1, copies[i].mutable_ref());
    operands.back() = copies[i].view();
  }
  const mutable_view& y = c.output(0);
  tensor real(dtype::float32, shape(y.dims.begin(), y.dims.end()));
  std::array<mutable_view, 1> out{c.has_input(y_scale) ? real.mutable_ref() : y};
  kernel_context program(c.attrs(), operands, out);
  newest_row("troupe", "Elementwise").reference(program);
  if (c.has_input(y_scale))
    convert_by("QuantizeLinear", c, real.view(), y_scale, y);
}

op_cost quantized_chain_cost(const attributes& attrs, const call_shapes& s) {
  const auto y = static_cast<double>(volume(s.outputs[0]));
  double flops = 4;
  for (const elementwise_step& step : parse_elementwise(attrs, operands_of(attrs, s.inputs.size())).steps)
    flops += function_of(step.code).flops;
  return {flops * y, operand_bytes(s)};
}

constexpr auto fused_quantized_elementwise_rows = std::to_array<op_def>({
    op_row("QuantizedElementwise", 1, infer_quantized_chain, quantized_chain,
           {.domain = "troupe",
            .inputs = {1, 254}, // not any number, of which none may be absent
            .types = byte_types | set_of(dtype::float32),
            .layouts = layout_support::broadcasting,
            .needs_float32 = true,
            .cost = quantized_chain_cost}),
});

} // namespace

extern constinit const op_table composed_fused_quantized_elementwise_ops = fused_quantized_elementwise_rows;

} // namespace troupe

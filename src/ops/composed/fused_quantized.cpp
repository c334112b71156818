// Products and convolutions of bytes with scales, produced by fusion from operands that are dequantised and results
// that are quantised:
//
//   y = act(Σ (a − a_zero) (b − b_zero) · (a_scale · b_scale) + bias)
//   quantised: saturate(⌊y / y_scale⌉ + y_zero)
//
// Inputs A, B, a_scale, b_scale, a_zero?, b_zero?, bias?, y_scale?, y_zero?: A and B as of MatMulInteger or
// ConvInteger, whose attributes and kernels these are; scales, bias and results are float32, and if there is a y_scale,
// results have y_zero's type (uint8 without). A's scale is a single element; B's, and the bias, are for all columns
// (filters) or for each. Attributes of ops/activation.hpp.
//
// A quantised result may be summed with a residual of its dims, inputs r, r_scale, r_zero?, z_scale, z_zero? after the
// others, as two nodes of bytes do one after the other (fused_quantized_elementwise.cpp):
//
//   z = saturate(⌊min(max((y − y_zero) · y_scale + (r − r_zero) · r_scale, sum_low), sum_high) / z_scale⌉ + z_zero)
//
// r is uint8 or int8, z has z_zero's type (uint8 without); the limits are attributes, scales and zero points are single
// elements.
#include "ops/activation.hpp"
#include "ops/axes.hpp"
#include "ops/epilogue.hpp"
#include "ops/families.hpp"
#include "ops/operand.hpp"
#include "ops/quantization.hpp"
#include "ops/registry.hpp"
#include "ops/window.hpp"

namespace troupe {
namespace {

/// Positions of the inputs.
struct at {
  static constexpr size_t a = 0, b = 1, a_scale = 2, b_scale = 3, a_zero = 4, b_zero = 5, bias = 6, y_scale = 7,
                          y_zero = 8, r = 9, r_scale = 10, r_zero = 11, z_scale = 12, z_zero = 13;
};

const op_def& integer_row(std::string_view name) {
  const op_def* def = find_op("", name, newest_opset(""));
  expects(def != nullptr, "the operator table lacks an integer product");
  return *def;
}

void require_float(const infer_context& c, size_t i, std::string_view what) {
  if (c.has_input(i) && c.type(i) != dtype::float32)
    fail(errc::invalid_model, "{} must be float32", what);
}

/// What the ONNX operator infers from A, B and the zero points, which have other places there.
symbolic_shape infer_sums(infer_context& c, const char* name) {
  graph g;
  node call{.name = "sums", .op_type = name, .attrs = c.attrs()};
  for (const size_t i : {at::a, at::b, at::a_zero, at::b_zero})
    call.inputs.push_back(c.has_input(i) ? g.add_value({.name = "operand", .type = c.type(i), .dims = c.dims(i)})
                                         : no_value);
  call.outputs = {g.add_value({.name = "sums"})};
  call.def = &integer_row(name);
  infer_context sums(g, call);
  call.def->infer(sums);
  return sums.output_dims(0);
}

/// Returns the type of what is quantised with a zero point, which may be absent.
dtype quantised_type(const infer_context& c, size_t zero) {
  const dtype type = c.has_input(zero) ? c.type(zero) : dtype::uint8;
  require_bytes(type);
  return type;
}

/// Returns the type of a result before a residual is added.
dtype infer_product(const infer_context& c) {
  if (c.has_input(at::y_scale))
    return quantised_type(c, at::y_zero);
  if (c.has_input(at::y_zero))
    fail(errc::invalid_model, "the result has a zero point, but no scale");
  return dtype::float32;
}

/// Returns the type of a sum with a residual.
dtype infer_sum(const infer_context& c) {
  require_bytes(c.type(at::r));
  require_zero_point(c, at::r_zero, at::r);
  for (const size_t i : {at::y_scale, at::r_scale, at::z_scale})
    if (!c.has_input(i))
      fail(errc::invalid_model, "a sum of bytes lacks a scale");
  for (const char* limit : {"sum_low", "sum_high"})
    c.attrs().real(limit);
  return quantised_type(c, at::z_zero);
}

template <const char* Name>
void infer_quantized(infer_context& c) {
  require_bytes(c.type(at::a));
  const symbolic_shape dims = infer_sums(c, Name);
  for (const size_t i : {at::a_scale, at::b_scale, at::bias, at::y_scale, at::r_scale, at::z_scale})
    require_float(c, i, "a scale or bias");
  parse_activation(c.attrs());
  const dtype product = infer_product(c);
  c.set_output(0, c.has_input(at::r) ? infer_sum(c) : product, dims);
  if (c.has_input(at::r))
    check_residual_dims(c, at::r);
}

/// Input `i`'s elements; throws `errc::invalid_input` unless there is one or, with `columns`, one for each of these.
std::vector<float> floats_of(const kernel_context& c, size_t i, int64_t columns) {
  const const_view& v = c.input(i);
  if (v.size() != 1 && v.size() != columns)
    fail(errc::invalid_input, "input {} has {} elements for {} columns", i, v.size(), columns);
  std::vector<float> values(static_cast<size_t>(columns));
  for (size_t k = 0; k < values.size(); ++k)
    values[k] = v.as<float>()[v.size() == 1 ? 0 : k];
  return values;
}

float only(const kernel_context& c, size_t i) {
  if (c.input(i).size() != 1)
    fail(errc::unsupported, "input {} must be a single element", i);
  return *c.input(i).as<float>();
}

/// Zero point `i`, 0 if it is absent.
float zero_of(const kernel_context& c, size_t i) {
  return c.has_input(i) ? *converted<float>(c.input(i)).data<float>() : 0.f;
}

/// y of real results.
void quantise(const kernel_context& c, const float* x, const mutable_view& y) {
  const quantized_range range = range_of(y.type);
  const float scale = only(c, at::y_scale), zero = zero_of(c, at::y_zero);
  visit_integer(y.type, [&]<class T>(type_tag<T>) {
    for (int64_t i = 0; i < y.size(); ++i)
      y.as<T>()[i] = static_cast<T>(saturated(x[i] / scale, zero, range));
  });
}

/// Bytes as the numbers that they stand for.
tensor dequantised(const kernel_context& c, const const_view& bytes, size_t scale, size_t zero) {
  tensor real = converted<float>(bytes);
  const float factor = only(c, scale), middle = zero_of(c, zero);
  for (float& x : std::span(real.mutable_data<float>(), static_cast<size_t>(real.size())))
    x = (x - middle) * factor;
  return real;
}

/// z of y.
void add_residual(const kernel_context& c, const const_view& y) {
  const tensor own = dequantised(c, y, at::y_scale, at::y_zero),
               more = dequantised(c, c.input(at::r), at::r_scale, at::r_zero);
  const mutable_view& z = c.output(0);
  if (more.size() != z.size())
    fail(errc::invalid_input, "the residual {} does not fit the output {}", to_string(more.dims()), to_string(z.dims));
  const float low = c.attrs().real("sum_low"), high = c.attrs().real("sum_high"), scale = only(c, at::z_scale),
              zero = zero_of(c, at::z_zero);
  const quantized_range range = range_of(z.type);
  visit_integer(z.type, [&]<class T>(type_tag<T>) {
    for (int64_t i = 0; i < z.size(); ++i) {
      const float sum = own.data<float>()[i] + more.data<float>()[i], raised = sum < low ? low : sum;
      z.as<T>()[i] = static_cast<T>(saturated((raised > high ? high : raised) / scale, zero, range));
    }
  });
}

/// `inner`: elements from one column to the next.
void scale_sums(kernel_context& c, const tensor& sums, int64_t columns, int64_t inner) {
  std::vector<float> scales = floats_of(c, at::b_scale, columns);
  for (float& scale : scales)
    scale *= only(c, at::a_scale);
  const std::vector<float> offsets = c.has_input(at::bias) ? floats_of(c, at::bias, columns) : std::vector<float>();
  tensor real(dtype::float32, sums.dims());
  auto* y = real.mutable_data<float>();
  for (int64_t i = 0; i < sums.size(); ++i) {
    const auto column = static_cast<size_t>(i / inner % columns);
    y[i] = static_cast<float>(sums.data<int32_t>()[i]) * scales[column];
    if (!offsets.empty())
      y[i] += offsets[column];
  }
  apply(parse_activation(c.attrs()), y, real.size());
  if (!c.has_input(at::y_scale)) {
    std::copy_n(y, real.size(), c.output(0).as<float>());
  } else if (!c.has_input(at::r)) {
    quantise(c, y, c.output(0));
  } else {
    tensor own(c.has_input(at::y_zero) ? c.input(at::y_zero).type : dtype::uint8, sums.dims());
    quantise(c, y, own.mutable_ref());
    add_residual(c, own.view());
  }
}

template <const char* Name, bool IsConv>
void quantized_reference(kernel_context& c) {
  const mutable_view& y = c.output(0);
  tensor sums(dtype::int32, shape(y.dims.begin(), y.dims.end()));
  const std::array<const_view, 4> in{c.input(at::a), c.input(at::b), optional_input(c, at::a_zero),
                                     optional_input(c, at::b_zero)};
  std::array<mutable_view, 1> out{sums.mutable_ref()};
  kernel_context integers(c.attrs(), in, out);
  integer_row(Name).reference(integers);
  if (IsConv)
    scale_sums(c, sums, y.dims[1], volume(std::span(y.dims).subspan(2)));
  else
    scale_sums(c, sums, c.input(at::b).dims.size() > 1 ? c.input(at::b).dims.back() : 1, 1);
}

op_cost quantized_conv_cost_of(const attributes&, const call_shapes& s) {
  return {conv_flops(s.inputs.at(at::b), s.outputs[0]), operand_bytes(s)};
}

op_cost quantized_matmul_cost_of(const attributes&, const call_shapes& s) {
  const shape& left = s.inputs.at(at::a);
  return {2.0 * static_cast<double>(volume(s.outputs[0])) * static_cast<double>(left.empty() ? 1 : left.back()),
          operand_bytes(s)};
}

constexpr char sums_of_conv[] = "ConvInteger", sums_of_matmul[] = "MatMulInteger";
/// A product of bytes with its bias and residual; the scales and zero points other than B's must be single.
void quantized_matmul_axes(call_axes& a) {
  for (const size_t i : {at::a_scale, at::a_zero, at::y_scale, at::y_zero})
    if (a.call().has_input(i) && !volume(a.call().dims(i)).is(1))
      a.refuse("has scales for rows of A or of its result");
  axes::product(a, at::b, false, false, false, {at::bias, at::r});
  axes::parameters(a, at::b, a.call().rank(at::b) - 1, {at::b_scale, at::b_zero});
}

void quantized_conv_axes(call_axes& a) {
  axes::filters(a, at::b, 0, {at::b_scale, at::b_zero, at::bias}, at::r);
}

constexpr auto fused_quantized_rows = std::to_array<op_def>({
    op_row("QuantizedConv", 1, infer_quantized<sums_of_conv>, quantized_reference<sums_of_conv, true>,
           {.domain = "troupe",
            .inputs = {4, 14},
            .types = byte_types,
            .layouts = layout_support::spatial,
            .needs_float32 = true,
            .residual_input = at::r,
            .cost = quantized_conv_cost_of,
            .axes = quantized_conv_axes,
            .mixes = "sums over"}),
    op_row("QuantizedMatMul", 1, infer_quantized<sums_of_matmul>, quantized_reference<sums_of_matmul, false>,
           {.domain = "troupe",
            .inputs = {4, 14},
            .types = byte_types,
            .needs_float32 = true,
            .cost = quantized_matmul_cost_of,
            .axes = quantized_matmul_axes,
            .mixes = "sums over"}),
});

} // namespace

extern constinit const op_table composed_fused_quantized_ops = fused_quantized_rows;

} // namespace troupe

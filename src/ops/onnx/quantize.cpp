// QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear.
//
//   y = saturate(⌊x / scale⌉ + zero point), halves to even        x = (y - zero point) · scale
//
// Scales are for the whole tensor, for an axis, or for blocks along an axis (see quantization.hpp). 8-bit floats are
// not rounded to integers: y = x / scale + zero point, then rounded as their format says.
#include "base/parallel.hpp"
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/quantization.hpp"
#include "tensor/small_float.hpp"

#include <array>

namespace troupe {
namespace {

constexpr dtype_set quantized =
    types::float8 | types::packed | set_of(dtype::uint8, dtype::int8, dtype::uint16, dtype::int16);

/// The zero points as elements of type T, as many as there are scales; throws `errc::invalid_input` where they are not.
template <class T>
tensor zero_points(const kernel_context& c) {
  if (c.has_input(2)) {
    if (c.input(2).size() != c.input(1).size())
      fail(errc::invalid_input, "{} scales, but {} zero points", c.input(1).size(), c.input(2).size());
    return converted<T>(c.input(2));
  }
  tensor zeros(dtype_of<T>, shape(c.input(1).dims.begin(), c.input(1).dims.end()));
  std::fill_n(zeros.mutable_data<T>(), zeros.size(), T(0));
  return zeros;
}

quantization_runs runs_of(const kernel_context& c) {
  return {c.input(0).dims, c.input(1).dims, c.attrs().integer("axis", 1), c.attrs().integer("block_size", 0)};
}

/// Calls `f(run)` for all runs, on several threads where they are many.
template <class F>
void for_each_run(const quantization_runs& runs, F f) {
  parallel_for(runs.count(), runs.grain(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      f(runs.at(i));
  });
}

/// x / scale in the precision that is asked for: the scale's type, or attribute `precision`.
struct division {
  dtype precision;
  float operator()(float x, float scale) const {
    if (precision == dtype::float16)
      return float16(float16(x) / float16(scale));
    if (precision == dtype::bfloat16)
      return bfloat16(bfloat16(x) / bfloat16(scale));
    return x / scale;
  }
};

/// Divides floats `x` into `y`, which holds one value an element: `finish(quotient, zero point)`.
template <class R, class F>
void quantize_to(const kernel_context& c, const float* x, R* y, F finish) {
  const quantization_runs runs = runs_of(c);
  const tensor scales = converted<float>(c.input(1)), zeros = zero_points<float>(c);
  const int64_t step = runs.step();
  const auto precision = static_cast<int>(c.attrs().integer("precision", 0));
  const division divide{precision ? dtype_from_onnx(precision) : c.input(1).type};
  const bool single = divide.precision != dtype::float16 && divide.precision != dtype::bfloat16;
  for_each_run(runs, [&](const quantization_runs::run& run) {
    const float *scale = scales.data<float>() + run.scale, *zero = zeros.data<float>() + run.scale;
    const float* from = x + run.begin;
    R* to = y + run.begin;
    if (single && step == 0) {
      const float s = *scale, z = *zero;
#pragma omp simd
      for (int64_t i = 0; i < run.length; ++i)
        to[i] = static_cast<R>(finish(from[i] / s, z));
    } else {
      for (int64_t i = 0; i < run.length; ++i)
        to[i] = static_cast<R>(finish(divide(from[i], scale[i * step]), zero[i * step]));
    }
  });
}

void quantize(kernel_context& c) {
  const mutable_view& y = c.output(0);
  const bool is_float = c.input(0).type == dtype::float32;
  const tensor copy = is_float ? tensor{} : converted<float>(c.input(0));
  const float* x = is_float ? c.input(0).as<float>() : copy.data<float>();
  if (y.type == dtype::float4e2m1) { // rounded by the conversion: it is the nearest one of the quotient
    tensor wide(dtype::float32, shape(y.dims.begin(), y.dims.end()));
    quantize_to(c, x, wide.mutable_data<float>(), [](float q, float z) { return q + z; });
    return convert(wide.view(), y);
  }
  if (is_small_float(y.type)) {
    const small_float_rule rule{c.attrs().integer("saturate", 1) != 0};
    return quantize_to(c, x, y.as<uint8_t>(),
                       [&](float q, float z) { return encode_small_float(y.type, q + z, rule); });
  }
  const quantized_range range = range_of(y.type);
  const auto finish = [&](float q, float z) { return saturated(q, z, range); };
  if (bits_of(y.type) < 8) {
    tensor wide(dtype::int8, shape(y.dims.begin(), y.dims.end()));
    quantize_to(c, x, wide.mutable_data<int8_t>(), finish);
    return convert(wide.view(), y);
  }
  visit_integer(y.type, [&]<class T>(type_tag<T>) { quantize_to(c, x, y.as<T>(), finish); });
}

/// The type of the zero point, else what `output_dtype` says (from opset 21 on), else uint8.
void infer_quantize(infer_context& c) {
  const auto stated = static_cast<int>(c.attrs().integer("output_dtype", 0));
  dtype type = c.has_input(2) ? c.type(2) : stated ? dtype_from_onnx(stated) : dtype::uint8;
  if (!(quantized & set_of(type)))
    fail(errc::unsupported, "{} is not a type that is quantised to", to_string(type));
  if (stated && dtype_from_onnx(stated) != type)
    fail(errc::invalid_model, "'output_dtype' is not the zero point's type {}", to_string(type));
  c.set_output(0, type, c.dims(0));
}

/// (x - zero) · scale with x and the zero points of type T.
template <class T, class R>
void dequantize_to(const kernel_context& c, const T* x, R* y) {
  using wide =
      std::conditional_t<std::is_same_v<T, int32_t>, int64_t, std::conditional_t<std::is_integral_v<T>, int32_t, T>>;
  const quantization_runs runs = runs_of(c);
  const tensor scales = converted<float>(c.input(1)), zeros = zero_points<T>(c);
  const int64_t step = runs.step();
  for_each_run(runs, [&](const quantization_runs::run& run) {
    const float* scale = scales.data<float>() + run.scale;
    const T *zero = zeros.data<T>() + run.scale, *from = x + run.begin;
    R* to = y + run.begin;
    const auto one = [](T v, T z, float s) {
      return static_cast<R>(static_cast<float>(static_cast<wide>(v) - static_cast<wide>(z)) * s);
    };
    if (step == 0) {
      const float s = *scale;
      const T z = *zero;
#pragma omp simd
      for (int64_t i = 0; i < run.length; ++i)
        to[i] = one(from[i], z, s);
    } else {
#pragma omp simd
      for (int64_t i = 0; i < run.length; ++i)
        to[i] = one(from[i], zero[i], scale[i]);
    }
  });
}

template <class T>
void dequantize_from(const kernel_context& c, const T* x) {
  switch (c.output(0).type) {
    case dtype::float32: return dequantize_to(c, x, c.output(0).as<float>());
    case dtype::float16: return dequantize_to(c, x, c.output(0).as<float16>());
    case dtype::bfloat16: return dequantize_to(c, x, c.output(0).as<bfloat16>());
    default: fail(errc::unsupported, "{} is not a type to dequantise to", to_string(c.output(0).type));
  }
}

void dequantize(kernel_context& c) {
  const const_view& x = c.input(0);
  if (c.has_input(2) && c.input(2).type != x.type)
    fail(errc::invalid_model, "the zero point is {}, but the operand is {}", to_string(c.input(2).type),
         to_string(x.type));
  if (is_small_float(x.type))
    return dequantize_from(c, converted<float>(x).data<float>());
  if (bits_of(x.type) < 8)
    return dequantize_from(c, converted<int8_t>(x).data<int8_t>());
  switch (x.type) {
    case dtype::uint8: return dequantize_from(c, x.as<uint8_t>());
    case dtype::int8: return dequantize_from(c, x.as<int8_t>());
    case dtype::uint16: return dequantize_from(c, x.as<uint16_t>());
    case dtype::int16: return dequantize_from(c, x.as<int16_t>());
    case dtype::int32: return dequantize_from(c, x.as<int32_t>());
    default: fail(errc::unsupported, "element type {} cannot be dequantised", to_string(x.type));
  }
}

/// The scale's type, or what `output_dtype` says (from opset 23 on).
void infer_dequantize(infer_context& c) {
  const auto stated = static_cast<int>(c.attrs().integer("output_dtype", 0));
  const dtype type = stated ? dtype_from_onnx(stated) : c.type(1);
  if (!((types::floats & set_of(type)) && type != dtype::float64))
    fail(errc::unsupported, "{} is not a type to dequantise to", to_string(type));
  c.set_output(0, type, c.dims(0));
}

void dynamic_quantize(kernel_context& c) {
  const float* x = c.input(0).as<float>();
  const int64_t count = c.input(0).size();
  float low = 0, high = 0;
  for (int64_t i = 0; i < count; ++i) {
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
  }
  const code_range codes(low, high);
  if (c.has_output(0))
    parallel_for(count, 32 * 1024, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        c.output(0).as<uint8_t>()[i] = static_cast<uint8_t>(codes.code(x[i]));
    });
  if (c.has_output(1))
    *c.output(1).as<float>() = codes.scale();
  if (c.has_output(2))
    *c.output(2).as<uint8_t>() = static_cast<uint8_t>(codes.zero());
}

void infer_dynamic_quantize(infer_context& c) {
  c.set_output(0, dtype::uint8, c.dims(0));
  c.set_output(1, dtype::float32, {});
  c.set_output(2, dtype::uint8, {});
}

/// One scale, one for each index of `axis`, or one for each block along it; the zero points are like the scales.
void quantize_axes(call_axes& a) {
  const infer_context& c = a.call();
  const symbolic_shape &x = c.dims(0), &scale = c.dims(1);
  const int64_t block = c.attrs().integer("block_size", 0);
  const bool single = volume(scale).is(1);
  const size_t along = single && block == 0 ? x.size() : c.axis("axis", 1, x.size());
  for (size_t axis = 0; axis < x.size(); ++axis) {
    const bool in_blocks = block > 0 && axis == along;
    if (in_blocks && !(x[axis] == scale[axis] * dim(block)))
      continue; // the last block is shorter
    const dim unit = in_blocks ? block : 1;
    call_axis& made = a.map({{0, axis, unit}}, {{0, axis, unit}});
    for (const size_t parameter : {1, 2})
      if (block > 0 || axis == along)
        a.join(made, {parameter, block > 0 ? axis : 0});
  }
}

constexpr auto quantize_rows = std::to_array<op_def>({
    op_row("QuantizeLinear", 10, infer_quantize, quantize,
           {.inputs = {2, 3},
            .types = types::floats | set_of(dtype::int32),
            .layouts = layout_support::agnostic,
            .needs_float32 = true,
            .axes = quantize_axes,
            .mixes = "has scales of uneven blocks along"}),
    op_row("DequantizeLinear", 10, infer_dequantize, dequantize,
           {.inputs = {2, 3},
            .types = quantized | set_of(dtype::int32),
            .layouts = layout_support::agnostic,
            .needs_float32 = true,
            .axes = quantize_axes,
            .mixes = "has scales of uneven blocks along"}),
    op_row("DynamicQuantizeLinear", 11, infer_dynamic_quantize, dynamic_quantize,
           {.max_outputs = 3,
            .types = set_of(dtype::float32),
            .layouts = layout_support::agnostic,
            .mixes = "takes its scale from all elements together"}),
});

} // namespace

extern constinit const op_table onnx_quantize_ops = quantize_rows;

} // namespace troupe

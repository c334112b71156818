#include "ops/composed/input_conversion.hpp"

#include "ops/composed/to_float16.hpp"
#include "ops/evaluate.hpp"
#include "ops/quantization.hpp"

#include <array>
#include <cstring>

namespace troupe {
namespace {

/// Returns the element of a constant that has one; nullopt if `v` is not such a constant.
std::optional<float> single_constant(const graph& g, value_id v) {
  const weight_ptr& constant = g.values[v].constant;
  if (!constant || volume(constant->dims) != 1)
    return std::nullopt;
  return converted<float>(materialise(*constant).view()).values<float>()[0];
}

template <class T>
void quantize_row(const input_conversion& how, const float* from, std::byte* to, int64_t count) {
  const quantized_range range = range_of(how.to);
  std::array<T, 512> bytes; // together they are written in whole lines
  for (int64_t at = 0; at < count; at += std::ssize(bytes)) {
    const int64_t here = std::min<int64_t>(std::ssize(bytes), count - at);
#pragma omp simd
    for (int64_t i = 0; i < here; ++i)
      bytes[static_cast<size_t>(i)] = static_cast<T>(saturated(from[at + i] / how.scale, how.zero, range));
    std::memcpy(to + at, bytes.data(), static_cast<size_t>(here));
  }
}

} // namespace

std::optional<input_conversion> input_conversion_of(const graph& g, const node& n) {
  if (n.domain == "troupe" && n.op_type == "ToFloat16")
    return input_conversion{.to = dtype::float16};
  const bool bytes =
      n.domain.empty() && n.op_type == "QuantizeLinear" && (byte_types & set_of(g.values[n.outputs[0]].type));
  if (!bytes || g.values[n.inputs[0]].type != dtype::float32 || g.values[n.inputs[1]].type != dtype::float32 ||
      n.attrs.integer("precision", 0) != 0)
    return std::nullopt;
  const bool has_zero = n.inputs.size() > 2 && n.inputs[2] != no_value;
  const auto scale = single_constant(g, n.inputs[1]);
  const auto zero = has_zero ? single_constant(g, n.inputs[2]) : 0;
  if (!scale || !zero)
    return std::nullopt;
  return input_conversion{g.values[n.outputs[0]].type, *scale, *zero};
}

void convert_input(const input_conversion& how, const float* from, std::byte* to, int64_t count) {
  switch (how.to) {
    case dtype::float16: return to_float16_row(from, reinterpret_cast<float16*>(to), count);
    case dtype::uint8: return quantize_row<uint8_t>(how, from, to, count);
    default: return quantize_row<int8_t>(how, from, to, count);
  }
}

} // namespace troupe

// GPU launches of QuantizeLinear (shaders/quantize.comp), DequantizeLinear (shaders/dequantize.comp), both also for
// floats of 8 and integers of 4 bits (…_bits.comp), and DynamicQuantizeLinear (shaders/dynamic_range.comp, then
// quantize.comp).
#include "launch/launch_rules.hpp"
#include "launch/parameters.hpp"
#include "ops/op.hpp"
#include "ops/quantization.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr dtype_set bit_types = types::float8 | set_of(dtype::uint4, dtype::int4);
constexpr dtype_set whole_types = set_of(dtype::uint8, dtype::int8, dtype::uint16, dtype::int16);

shader::quantization one_scale(const gpu_call& call) {
  return {.count = call.outputs[0].size(), .inner = 1, .size = 1, .block = 1, .blocks = 1};
}

/// The granularity of scales, and the parameters that it gives; throws if the scale's shape fits none.
std::pair<uint32_t, shader::quantization> granularity_of(const gpu_call& call) {
  const shape &dims = call.inputs[0].dims, &scale = call.inputs[1].dims;
  const int64_t axis = call.attrs.integer("axis", 1), block = call.attrs.integer("block_size", 0);
  const quantization_runs check(dims, scale, axis, block);
  if (volume(scale) == 1 && block == 0)
    return {shader::scale_whole, one_scale(call)};
  const size_t at = normalize_axis(axis, dims.size());
  return {block > 0 ? shader::scale_blocks : shader::scale_axis,
          {.count = call.outputs[0].size(),
           .inner = volume(std::span(dims).subspan(at + 1)),
           .size = dims[at],
           .block = std::max<int64_t>(block, 1),
           .blocks = block > 0 ? scale[at] : 1}};
}

/// `constants` are after the granularity's; a group has `elements`.
launch_lists launch_by_scale(const gpu_call& call, const std::string& stem, const std::string& variant,
                             const std::vector<uint32_t>& constants = {}, int64_t elements = 256 * 4) {
  const auto [granularity, block] = granularity_of(call);
  if (granularity != shader::scale_whole && call.inputs[0].layout != layout::plain)
    return {}; // elements would be in another order than the axis says
  const bool has_zero = call.has_input(2);
  launch_builder b(call, stem);
  launch& l = b.add(stem + "." + variant, flat_groups(call.outputs[0].size(), elements, call.gpu),
                    {b.in(0), b.in(1), b.in(has_zero ? 2 : 1), b.out(0)});
  l.constants = {granularity, has_zero ? 1u : 0u};
  l.constants.insert(l.constants.end(), constants.begin(), constants.end());
  l.params = words_of(block);
  return single_list(b);
}

bool zeros_fit(const gpu_call& call, dtype type) {
  return !call.has_input(2) || (call.inputs[2].type == type && call.inputs[2].size() == call.inputs[1].size());
}

/// Returns "f32" or "f16" if both types are that, else nullopt.
std::optional<std::string> common_float(dtype a, dtype b, const gpu_features& gpu) {
  return a == b && (a == dtype::float32 || a == dtype::float16) ? arithmetic_variant(a, gpu) : std::nullopt;
}

launch_lists quantize_launches(const gpu_call& call) {
  const dtype x = call.inputs.at(0).type, scale = call.inputs.at(1).type, y = call.outputs.at(0).type;
  const auto from = common_float(x, scale, call.gpu);
  const auto precision = static_cast<dtype>(call.attrs.integer("precision", 0));
  if (!from || !call.gpu.int8 || !zeros_fit(call, y) || (precision != dtype::undefined && precision != scale))
    return {};
  if (bit_types & set_of(y))
    return launch_by_scale(call, "quantize_bits", *from,
                           {static_cast<uint32_t>(y), call.attrs.integer("saturate", 1) != 0 ? 1u : 0u},
                           bits_of(y) < 8 ? 512 : 256);
  const auto to = whole_types & set_of(y) ? arithmetic_variant(y, call.gpu) : std::nullopt;
  return to ? launch_by_scale(call, "quantize", *from + "_" + *to) : launch_lists{};
}

launch_lists dequantize_launches(const gpu_call& call) {
  const dtype x = call.inputs.at(0).type, scale = call.inputs.at(1).type, y = call.outputs.at(0).type;
  const auto to = common_float(y, scale, call.gpu);
  // A zero point of int32 would need differences of 33 bits.
  const bool whole = x == dtype::int32 && !call.has_input(2);
  if (!to || !call.gpu.int8 || !zeros_fit(call, x))
    return {};
  if (bit_types & set_of(x))
    return launch_by_scale(call, "dequantize_bits", *to, {static_cast<uint32_t>(x)}, 256);
  const auto from = whole || (whole_types & set_of(x)) ? arithmetic_variant(x, call.gpu) : std::nullopt;
  return from ? launch_by_scale(call, "dequantize", *from + "_" + *to) : launch_lists{};
}

launch_lists dynamic_quantize_launches(const gpu_call& call) {
  if (!call.gpu.int8 || !call.has_output(0))
    return {};
  launch_builder b(call, "dynamic_quantize");
  const int64_t count = call.inputs.at(0).size();
  launch_binding scale = call.has_output(1) ? b.out(1) : written(b.scratch(4));
  launch_binding zero = call.has_output(2) ? b.out(2) : written(b.scratch(4));
  b.add("dynamic_range.f32", {1, 1, 1}, {b.in(0), scale, zero}).params =
      words_of(shader::element_count{.count = count});
  b.next_step();
  scale.written = zero.written = false;
  launch& l = b.add("quantize.f32_u8", flat_groups(count, 256 * 4, call.gpu), {b.in(0), scale, zero, b.out(0)});
  l.constants = {shader::scale_whole, 1};
  l.params = words_of(one_scale(call));
  return single_list(b);
}

} // namespace

extern constinit const launch_rows quantize_rules = {
    {"", "DequantizeLinear", dequantize_launches},
    {"", "DynamicQuantizeLinear", dynamic_quantize_launches},
    {"", "QuantizeLinear", quantize_launches},
};

} // namespace troupe

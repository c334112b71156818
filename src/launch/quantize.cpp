// GPU launches of QuantizeLinear (shaders/quantize.comp), DequantizeLinear (shaders/dequantize.comp) and
// DynamicQuantizeLinear (shaders/dynamic_range.comp, then quantize.comp).
#include "launch/launches.hpp"
#include "ops/op.hpp"
#include "ops/quantization.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Words of shaders/quantization.glsl.
struct granularity_words {
  uint32_t granularity = 0;
  int64_t inner = 1, size = 1, block = 1, blocks = 1;
};

/// Throws where the scale's shape fits no granularity.
granularity_words granularity_of(const gpu_call& call) {
  const shape &dims = call.inputs[0].dims, &scale = call.inputs[1].dims;
  const int64_t axis = call.attrs.integer("axis", 1), block = call.attrs.integer("block_size", 0);
  const quantization_runs check(dims, scale, axis, block);
  if (volume(scale) == 1 && block == 0)
    return {};
  const size_t at = normalize_axis(axis, dims.size());
  const int64_t blocks = block > 0 ? scale[at] : 1;
  return {block > 0 ? 2u : 1u, volume(std::span(dims).subspan(at + 1)), dims[at], std::max<int64_t>(block, 1), blocks};
}

launch_lists launch_by_scale(const gpu_call& call, const std::string& stem, const std::string& variant) {
  const granularity_words words = granularity_of(call);
  if (words.granularity != 0 && call.inputs[0].layout != layout::plain)
    return {}; // elements would lie in another order than the axis says
  const bool has_zero = call.has_input(2);
  launch_builder b(call, stem);
  const int64_t count = call.outputs[0].size();
  launch& l = b.add(stem + "." + variant, flat_groups(count, 256 * 4, call.gpu),
                    {b.in(0), b.in(1), b.in(has_zero ? 2 : 1), b.out(0)});
  l.constants = {words.granularity, has_zero ? 1u : 0u};
  for (int64_t word : {count, words.inner, words.size, words.block, words.blocks})
    l.params.push_back(static_cast<uint32_t>(word));
  auto list = b.finish();
  return list ? launch_lists{std::move(*list)} : launch_lists{};
}

bool zeros_fit(const gpu_call& call, dtype type) {
  return !call.has_input(2) || (call.inputs[2].type == type && call.inputs[2].size() == call.inputs[1].size());
}

/// Returns "f32" or "f16" where both types are that, else nullopt.
std::optional<std::string> common_float(dtype a, dtype b, const gpu_features& gpu) {
  return a == b && (a == dtype::float32 || a == dtype::float16) ? arithmetic_variant(a, gpu) : std::nullopt;
}

} // namespace

launch_lists quantize_launches(const gpu_call& call) {
  const dtype x = call.inputs.at(0).type, scale = call.inputs.at(1).type, y = call.outputs.at(0).type;
  const auto from = common_float(x, scale, call.gpu);
  const auto precision = static_cast<dtype>(call.attrs.integer("precision", 0));
  if (!from || !call.gpu.int8 || (y != dtype::uint8 && y != dtype::int8) || !zeros_fit(call, y) ||
      (precision != dtype::undefined && precision != scale))
    return {};
  return launch_by_scale(call, "quantize", *from + (y == dtype::uint8 ? "_u8" : "_i8"));
}

launch_lists dequantize_launches(const gpu_call& call) {
  const dtype x = call.inputs.at(0).type, scale = call.inputs.at(1).type, y = call.outputs.at(0).type;
  const auto to = common_float(y, scale, call.gpu);
  // A zero point of int32 would need differences of 33 bits.
  const bool whole = x == dtype::int32 && !call.has_input(2);
  if (!to || !call.gpu.int8 || (x != dtype::uint8 && x != dtype::int8 && !whole) || !zeros_fit(call, x))
    return {};
  return launch_by_scale(call, "dequantize", *arithmetic_variant(x, call.gpu) + "_" + *to);
}

launch_lists dynamic_quantize_launches(const gpu_call& call) {
  if (!call.gpu.int8 || !call.has_output(0))
    return {};
  launch_builder b(call, "dynamic_quantize");
  const int64_t count = call.inputs.at(0).size();
  launch_binding scale = call.has_output(1) ? b.out(1) : written(b.scratch(4));
  launch_binding zero = call.has_output(2) ? b.out(2) : written(b.scratch(4));
  b.add("dynamic_range.f32", {1, 1, 1}, {b.in(0), scale, zero}).params = {static_cast<uint32_t>(count)};
  b.next_step();
  scale.written = zero.written = false;
  launch& l = b.add("quantize.f32_u8", flat_groups(count, 256 * 4, call.gpu), {b.in(0), scale, zero, b.out(0)});
  l.constants = {0, 1};
  l.params = {static_cast<uint32_t>(count), 1, 1, 1, 1};
  auto list = b.finish();
  return list ? launch_lists{std::move(*list)} : launch_lists{};
}

} // namespace troupe

#include "launch/packed_image.hpp"

#include "base/round_up.hpp"
#include "ops/pack.hpp"

namespace troupe {
namespace {

constexpr int64_t pixel = 4, vector = 8; // elements

/// A window of two axes of constant weights, whose steps along a row are whole vectors.
bool suits(const gpu_call& call, const conv_call& c) {
  const auto& [d, h, w] = c.axes;
  const operand& weights = call.inputs[1];
  return call.inputs[0].type == dtype::float16 && weights.constant && weights.dims.size() == 4 && c.groups == 1 &&
         c.channels <= pixel && c.channels > 0 && w.kernel > 1 && w.dilation == 1 && w.stride * pixel % vector == 0 &&
         c.images > 0 && c.outputs() > 0;
}

/// Whether gathering takes so long that packing, a launch of its own, is worth it: 32 images of 224 × 224 by 64
/// filters of 7 × 7 took 270 µs on an H200.
bool is_large(const gpu_call& call, const conv_call& c) {
  constexpr int64_t pixels = 512; // of the output, a multiprocessor
  return c.images * c.outputs() >= pixels * int64_t{call.gpu.units};
}

} // namespace

std::optional<packed_image> packed_image_of(const gpu_call& call, const conv_call& c) {
  if (!suits(call, c) || (call.ways == way_range::usual && !is_large(call, c)))
    return std::nullopt;
  const auto& [d, h, w] = c.axes;
  const int64_t taps = round_up(w.kernel, vector / pixel); // of a row
  const int64_t height = (h.out - 1) * h.stride + (h.kernel - 1) * h.dilation + 1;
  const int64_t width = round_up((w.out - 1) * w.stride + taps, vector / pixel);
  const int64_t count = c.images * height * width * pixel;
  const auto shader = movement_variant(dtype::float16, call.gpu);
  if (!shader || count >= index_limit)
    return std::nullopt;
  packed_image p{.call = c, .weights = {}, .pad = {}, .pad_shader = "pad." + *shader};
  p.call.channels = taps * pixel;
  p.call.in = {height * width * pixel, 1, vector};
  p.call.axes[1].in = height;
  p.call.axes[1].pad_begin = 0;
  p.call.axes[2] = {.in = width * pixel / vector, .out = w.out, .stride = w.stride * pixel / vector};
  p.weights = pack(call.inputs[1].constant, {c.filters, c.channels, h.kernel, w.kernel}, {0, 2, 3, 1},
                   {c.filters, h.kernel, taps, pixel});
  p.pad = {.count = count, .rank = 4, .mode = shader::pad_constant};
  p.pad.axes[0] = {pixel, 0, c.channels, c.in.channel};
  p.pad.axes[1] = {width, w.pad_begin, w.in, c.in.pixel};
  p.pad.axes[2] = {height, h.pad_begin, h.in, c.in.pixel * w.in};
  p.pad.axes[3] = {c.images, 0, c.images, c.in.image};
  p.bytes = count * 2;
  p.half_tail = taps != w.kernel;
  return p;
}

launch_binding add_packed_image(launch_builder& builder, const gpu_call& call, const packed_image& image) {
  const launch_binding made = builder.scratch(image.bytes);
  launch& l = builder.add(image.pad_shader, flat_groups(image.pad.count, 256, call.gpu),
                          {builder.in(0), builder.in(0), written(made)});
  l.params = words_of(image.pad);
  builder.next_step();
  return made;
}

} // namespace troupe

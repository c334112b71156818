#include "launch/convolution.hpp"

#include "launch/parameters.hpp"

#include <utility>

namespace troupe {
namespace {

/// Returns how many neighbouring pixels an invocation of depthwise.comp computes: more share inputs, fewer fill the
/// device.
uint32_t pixels_of_invocation(const conv_call& c, const gpu_features& gpu) {
  const int64_t vectors = c.images * c.outputs() * c.filters / 4;
  if (c.axes[2].dilation != 1)
    return 1;
  for (const uint32_t pixels : {4u, 2u})
    if (c.axes[2].out >= pixels && vectors / pixels >= int64_t{gpu.units} * 256)
      return pixels;
  return 1;
}

} // namespace

spatial_steps steps_of(const operand& o) {
  const int64_t channels = o.dims[1], pixels = volume(std::span(o.dims).subspan(2));
  const int64_t row = o.is_part() ? o.part.pitch : channels;
  if (o.layout == layout::channels_last || same_in_both_layouts(o.dims))
    return {row * pixels, 1, row};
  return {channels * pixels, pixels, 1};
}

bool conv_call::pointwise() const {
  for (const window_axis& a : axes)
    if (a.kernel != 1 || a.stride != 1 || a.pad_begin != 0 || a.in != a.out)
      return false;
  return true;
}

conv_call parse_convolution(const gpu_call& call, product_epilogue epilogue) {
  const operand &x = call.inputs[0], &w = call.inputs[1], &y = call.outputs[0];
  conv_call c{
      .images = x.dims[0],
      .channels = x.dims[1],
      .filters = w.dims[0],
      .groups = call.attrs.integer("group", 1),
      .axes = bind_window(parse_window(call.attrs, {w.dims.begin() + 2, w.dims.end()}), std::span(x.dims).subspan(2)),
      .in = steps_of(x),
      .out = steps_of(y),
      .out_first = y.part.first,
      .epilogue = std::move(epilogue)};
  for (size_t i = 0; i < 3; ++i) // the output's own sizes: `ceil_mode` is not an attribute of convolution
    c.axes[i].out = i + y.dims.size() < 5 ? 1 : y.dims[y.dims.size() - 3 + i];
  return c;
}

float_product product_of(const conv_call& c) {
  float_product p;
  p.m = c.images * c.outputs();
  p.n = c.filters / c.groups;
  p.k = c.channels / c.groups * c.taps();
  p.b_line = p.k;
  if (c.groups > 1)
    p.batch = {{c.groups, 0, 0}};
  p.epilogue = c.epilogue;
  return p;
}

std::vector<uint32_t> conv_parameters(const conv_call& c, const float_product& p, const tiling& t) {
  const auto& [d, h, w] = c.axes;
  const int64_t channels = c.channels / c.groups;
  return words_of(shader::conv{.product = product_parameters_of(p, t, c.product_rows(), 0),
                               .channels = channels,
                               .taps = c.taps(),
                               .in_image = c.in.image,
                               .in_channel = c.in.channel,
                               .in_pixel = c.in.pixel,
                               .out_image = c.out.image,
                               .out_pixel = c.out.pixel,
                               .pixels = c.outputs(),
                               .channel_divisor = divisor(channels),
                               .tap_divisor = divisor(c.taps()),
                               .kernel_w_divisor = divisor(w.kernel),
                               .kernel_h_divisor = divisor(h.kernel),
                               .pixel_divisor = divisor(c.outputs()),
                               .out_w_divisor = divisor(w.out),
                               .in_size = {d.in, h.in, w.in},
                               .out_size = {d.out, h.out, w.out},
                               .kernel = {d.kernel, h.kernel, w.kernel},
                               .stride = {d.stride, h.stride, w.stride},
                               .dilation = {d.dilation, h.dilation, w.dilation},
                               .pad = {d.pad_begin, h.pad_begin, w.pad_begin}});
}

std::optional<depthwise_shape> depthwise_shape_of(const conv_call& c, const gpu_features& gpu, uint32_t pixels) {
  constexpr int64_t most_unrolled_taps = 121;
  const auto& [d, h, w] = c.axes;
  if (c.channels != c.groups || h.kernel * w.kernel > most_unrolled_taps || gpu.max_group_size < 128)
    return std::nullopt;
  if (pixels > 1 && (w.dilation != 1 || w.out < pixels))
    return std::nullopt;
  if (d.in * h.in * w.in == 0) // beyond the input, kernels read what is at its end
    return std::nullopt;
  depthwise_shape s;
  s.vectors = c.channels_last() && c.filters == c.channels && c.filters % 4 == 0 && c.out.pixel % 4 == 0 &&
              c.out_first % 4 == 0;
  s.pixels = !s.vectors ? 1 : pixels > 0 ? pixels : pixels_of_invocation(c, gpu);
  s.blocks = (w.out + s.pixels - 1) / s.pixels;
  s.count = c.images * d.out * h.out * s.blocks * (s.vectors ? c.filters / 4 : c.filters);
  return s;
}

std::vector<uint32_t> depthwise_shape::constants(const conv_call& c, uint32_t flags) const {
  const auto& [d, h, w] = c.axes;
  return {vectors ? 1u : 0u,
          pixels,
          word(h.kernel),
          word(w.kernel),
          word(w.stride),
          flags,
          static_cast<uint32_t>(c.epilogue.act.code)};
}

std::vector<uint32_t> depthwise_parameters(const conv_call& c, const depthwise_shape& s) {
  const auto& [d, h, w] = c.axes;
  return words_of(shader::depthwise{.count = s.count,
                                    .filters = c.filters,
                                    .multiplier = c.filters / c.channels,
                                    .kernel_d = d.kernel,
                                    .in_image = c.in.image,
                                    .in_channel = c.in.channel,
                                    .in_pixel = c.in.pixel,
                                    .channels_first = c.out.channel != 1,
                                    .out_image = c.out.image,
                                    .out_channel = c.out.channel,
                                    .out_pixel = c.out.pixel,
                                    .images = c.images,
                                    .act_alpha = c.epilogue.act.alpha,
                                    .act_beta = c.epilogue.act.beta,
                                    .out_first = c.out_first,
                                    .in_size = {d.in, h.in, w.in},
                                    .out_size = {d.out, h.out, s.blocks, w.out},
                                    .stride = {d.stride, h.stride, w.stride},
                                    .dilation = {d.dilation, h.dilation, w.dilation},
                                    .pad = {d.pad_begin, h.pad_begin, w.pad_begin}});
}

} // namespace troupe

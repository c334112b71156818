// GPU launches of DeformConv (shaders/deform_conv.comp): what the taps meet, then its products with the filters.
#include "graph/dim.hpp"
#include "launch/launch_rules.hpp"
#include "launch/parameters.hpp"
#include "ops/window.hpp"

#include <algorithm>

namespace troupe {
namespace {

launch_lists deform_conv_launches(const gpu_call& call) {
  constexpr size_t bias_input = 3, mask_input = 4;
  constexpr int64_t longest_axis = 1 << 20; // places are float32 numbers
  const operand &x = call.inputs.at(0), &w = call.inputs.at(1), &y = call.outputs.at(0);
  const auto variant = float_variant(x.type, call.gpu);
  if (!variant || x.dims.size() != 4 || std::max(x.dims[2], x.dims[3]) >= longest_axis)
    return {};
  const window_axes axes =
      bind_window(parse_filter(call.attrs, to_symbolic(x.dims), to_symbolic(w.dims)), std::span(x.dims).subspan(2));
  const window_axis &rows = axes[1], &columns = axes[2];
  const int64_t channels = x.dims[1], filters = w.dims[0], taps = rows.kernel * columns.kernel;
  const int64_t group = call.attrs.integer("group", 1), offset_group = call.attrs.integer("offset_group", 1);
  shader::deform_conv block{.count = x.dims[0] * channels * taps * rows.out * columns.out,
                            .channels = channels,
                            .filters = filters,
                            .taps = taps,
                            .offset_channels = channels / offset_group,
                            .depth = channels / group * taps,
                            .group_filters = filters / group,
                            .kernel_columns = columns.kernel,
                            .size = {rows.in, columns.in, rows.out, columns.out},
                            .step = {rows.stride, columns.stride, rows.dilation, columns.dilation},
                            .pad = {rows.pad_begin, columns.pad_begin}};
  const int64_t samples = block.count;
  if (samples >= index_limit)
    return {};
  launch_builder b(call, "deform_conv");
  const launch_binding scratch = b.scratch(std::max<int64_t>(samples, 1) * 4);
  const auto input = [&](size_t i) { return b.in(call.has_input(i) ? i : 0); };
  const uint32_t flags =
      (call.has_input(bias_input) ? shader::deform_bias : 0) | (call.has_input(mask_input) ? shader::deform_mask : 0);
  const auto add = [&](uint32_t phase, int64_t count, launch_binding target, launch_binding states) {
    block.count = count;
    launch& l = b.add("deform_conv." + *variant, flat_groups(count, 128, call.gpu),
                      {b.in(0), b.in(1), b.in(2), input(bias_input), input(mask_input), target, states});
    l.constants = {phase, flags};
    l.params = words_of(block);
  };
  if (samples > 0)
    add(shader::deform_samples, samples, written(scratch), written(scratch));
  b.next_step();
  add(shader::deform_products, y.size(), b.out(0), scratch);
  return single_list(b);
}

} // namespace

extern constinit const launch_rows deform_conv_rules = {
    {"", "DeformConv", deform_conv_launches},
};

} // namespace troupe

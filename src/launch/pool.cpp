// MaxPool, AveragePool, LpPool and their global forms: one invocation an output element (shaders/pool.comp), or a team
// of invocations a plane if the window is the whole plane (shaders/global_pool.comp).
#include "ops/onnx/pool.hpp"
#include "launch/launch_rules.hpp"
#include "launch/parameters.hpp"
#include "ops/operand_walk.hpp"
#include "ops/window.hpp"

#include <algorithm>
#include <bit>

namespace troupe {
namespace {

constexpr uint32_t pool_group = 128;

/// Steps of an operand [N, C, spatial…] in elements; the spatial axes are contiguous among themselves.
struct plane_steps {
  int64_t image, channel, pixel;

  explicit plane_steps(const operand& o) {
    const int64_t channels = o.dims[1], pixels = volume(std::span(o.dims).subspan(2));
    const bool last = o.layout == layout::channels_last || same_in_both_layouts(o.dims);
    image = channels * pixels;
    channel = last ? 1 : pixels;
    pixel = last ? channels : 1;
  }
};

struct pool_call {
  uint32_t kind;
  float order; // of a norm
  plane_steps in, out;
  bool vectors; // four channels at a time

  pool_call(const gpu_call& call, uint32_t k)
      : kind(k), order(k == shader::pool_kind_norm ? static_cast<float>(norm_order(call.attrs)) : 0.f),
        in(call.inputs[0]), out(call.outputs[0]),
        vectors(in.channel == 1 && out.channel == 1 && call.inputs[0].dims[1] % 4 == 0 &&
                (types::floats & set_of(call.inputs[0].type)) != 0) {}
};

/// Returns the variant for an operand: integers only as maxima.
std::optional<std::string> variant_for(const gpu_call& call, uint32_t kind) {
  const dtype type = call.inputs[0].type;
  if (type != dtype::float32 && type != dtype::float16 &&
      !(kind == shader::pool_kind_maximum && (type == dtype::int8 || type == dtype::uint8)))
    return std::nullopt;
  return arithmetic_variant(type, call.gpu);
}

launch_lists launch_global(const gpu_call& call, uint32_t kind) {
  const auto variant = variant_for(call, kind);
  if (!variant || call.gpu.max_group_size < pool_group)
    return {};
  const operand& x = call.inputs[0];
  const pool_call p(call, kind);
  const int64_t channels = p.vectors ? x.dims[1] / 4 : x.dims[1], pixels = volume(std::span(x.dims).subspan(2));
  const int64_t count = x.dims[0] * channels;
  // Channels last: eight neighbours read whole lines of memory. Teams as large as there is work for, but not idle ones.
  const uint32_t most = p.in.pixel == 1 ? pool_group : pool_group / 8;
  const auto team = std::min(most, std::bit_ceil(word(std::clamp<int64_t>(pixels / 2, 1, pool_group))));
  launch_builder b(call, "global_pool");
  launch& l = b.add("global_pool." + *variant, flat_groups(count, pool_group / team, call.gpu), {b.in(0), b.out(0)});
  l.constants = {pool_group, team, kind, p.vectors ? 1u : 0u, float_bits(p.order)};
  l.params = words_of(shader::global_pool{.count = count,
                                          .channels = channels,
                                          .pixels = pixels,
                                          .pixels_first = p.in.pixel == 1,
                                          .in_image = p.in.image,
                                          .in_channel = p.in.channel,
                                          .in_pixel = p.in.pixel});
  return single_list(b);
}

/// Whether the window is the whole plane, nothing more.
bool is_global(const window_axes& axes) {
  return std::all_of(axes.begin(), axes.end(), [](const window_axis& a) {
    return a.out == 1 && a.pad_begin == 0 && a.kernel == a.in && (a.dilation == 1 || a.kernel == 1);
  });
}

launch_lists launch_pool(const gpu_call& call, uint32_t kind) {
  const auto variant = variant_for(call, kind);
  if (!variant || call.gpu.max_group_size < pool_group)
    return {};
  const operand &x = call.inputs[0], &y = call.outputs[0];
  const window_axes axes = bind_window(parse_pool(call.attrs, x.dims.size()), std::span(x.dims).subspan(2));
  const auto& [d, h, w] = axes;
  const bool count_padding = kind == shader::pool_kind_average && call.attrs.integer("count_include_pad", 0) != 0;
  const bool indices = call.has_output(1), floats = (types::floats & set_of(x.type)) != 0;
  if (is_global(axes) && !indices && floats)
    return launch_global(call, kind);
  pool_call p(call, kind);
  p.vectors = p.vectors && !indices;
  const int64_t count = p.vectors ? y.size() / 4 : y.size();
  launch_builder b(call, "pool");
  launch& l =
      b.add("pool." + *variant, flat_groups(count, pool_group, call.gpu), {b.in(0), b.out(0), b.out(indices ? 1 : 0)});
  l.constants = {kind,           p.vectors ? 1u : 0u, indices ? 1u : 0u,  count_padding ? 1u : 0u,
                 word(h.kernel), word(w.kernel),      float_bits(p.order)};
  l.params = words_of(shader::pool{.count = count,
                                   .channels = p.vectors ? x.dims[1] / 4 : x.dims[1],
                                   .kernel_d = d.kernel,
                                   .channels_first = p.out.channel != 1,
                                   .in_image = p.in.image,
                                   .in_channel = p.in.channel,
                                   .in_pixel = p.in.pixel,
                                   .columns_first = call.attrs.integer("storage_order", 0) != 0,
                                   .out_image = p.out.image,
                                   .out_channel = p.out.channel,
                                   .out_pixel = p.out.pixel,
                                   .in_size = {d.in, h.in, w.in},
                                   .out_size = {d.out, h.out, w.out},
                                   .stride = {d.stride, h.stride, w.stride},
                                   .dilation = {d.dilation, h.dilation, w.dilation},
                                   .pad = {d.pad_begin, h.pad_begin, w.pad_begin},
                                   .pad_end = {d.pad_end, h.pad_end, w.pad_end}});
  return single_list(b);
}

} // namespace

extern constinit const launch_rows pool_rules = {
    {"", "AveragePool", [](const gpu_call& c) { return launch_pool(c, shader::pool_kind_average); }},
    {"", "GlobalAveragePool", [](const gpu_call& c) { return launch_global(c, shader::pool_kind_average); }},
    {"", "GlobalLpPool", [](const gpu_call& c) { return launch_global(c, shader::pool_kind_norm); }},
    {"", "GlobalMaxPool", [](const gpu_call& c) { return launch_global(c, shader::pool_kind_maximum); }},
    {"", "LpPool", [](const gpu_call& c) { return launch_pool(c, shader::pool_kind_norm); }},
    {"", "MaxPool", [](const gpu_call& c) { return launch_pool(c, shader::pool_kind_maximum); }},
};

} // namespace troupe

// Conv, ConvTranspose and their fused forms: a plain product if the kernel is one pixel, an implicit product otherwise
// (shaders/conv.comp), and kernels of their own for depthwise and transposed convolution. Transposed convolutions whose
// windows tile the output are plain products too.
#include "launch/convolution.hpp"
#include "launch/launch_rules.hpp"
#include "launch/packed_image.hpp"
#include "launch/parameters.hpp"
#include "ops/onnx/conv_transpose.hpp"
#include "ops/pack.hpp"

#include <algorithm>

namespace troupe {
namespace {

product_epilogue epilogue_of(const gpu_call& call) {
  product_epilogue e;
  e.act = parse_activation(call.attrs);
  if (call.has_input(2))
    e.bias = 2;
  if (call.has_input(3))
    e.residual = 3;
  return e;
}

/// The sizes of the implicit product, and how its operands are read.
struct implicit_product {
  float_product p;
  bool channel_last = false;                                      // depth order: taps, then channels
  uint32_t a = shader::line_elements, b = shader::depth_elements; // modes
  std::optional<packed_image> packed = {};                        // what A is then
};

implicit_product implicit(const conv_call& c, int64_t width, bool constant_weights) {
  implicit_product i{.p = product_of(c)};
  const int64_t channels = c.channels / c.groups;
  if (i.p.k % width == 0)
    i.b = shader::depth_vectors;
  if (c.in.channel == 1) {
    i.channel_last = constant_weights || c.taps() == 1 || channels == 1;
    const bool vectors = i.channel_last && channels % width == 0 && c.channels % width == 0;
    i.a = vectors ? shader::depth_vectors : shader::depth_elements;
  }
  return i;
}

/// The same by a packed image, all in vectors.
implicit_product implicit(packed_image image) {
  return {.p = product_of(image.call),
          .channel_last = true,
          .a = shader::depth_vectors,
          .b = shader::depth_vectors,
          .packed = std::move(image)};
}

/// Whether rows of the output are evenly apart, as they are if channels come last; only then are partial sums a
/// row-major matrix too.
bool has_even_rows(const conv_call& c) {
  return c.out.channel == 1;
}

/// The kernel of implicit products with one tile; nullopt if that is beyond the device's limits.
std::optional<launch_list> with_tile(const gpu_call& call, const conv_call& c, const implicit_product& i,
                                     tile_family family, const std::string& variant, const tiling& t) {
  const bool matrices = family != tile_family::tiled;
  const std::string stem = matrices ? "conv_cooperative" : "conv";
  const operand& weights = call.inputs[1];
  const float_product& p = i.p;
  launch_builder builder(call, i.packed ? stem + ".packed" : stem);
  const launch_binding a = i.packed ? add_packed_image(builder, call, *i.packed) : builder.in(0);
  launch_binding b = i.packed ? builder.made(i.packed->weights) : builder.in(1);
  if (!i.packed && i.channel_last && c.taps() > 1 && c.channels > c.groups && weights.constant)
    b = builder.packed(1, {c.filters, c.channels / c.groups, c.taps()}, {0, 2, 1});
  const bool rows = has_even_rows(c);
  uint32_t flags = c.epilogue.flags();
  const auto groups = product_groups(p, t);
  flags |= tile_flags(t, groups, c.groups, call.gpu) | (rows ? 0 : shader::product_strided_out);
  flags |= rows ? vector_out(p, c.product_rows(), product_width(family)) : 0;
  flags |= i.packed && i.packed->half_tail ? shader::product_half_tail : 0;
  launch_binding out = builder.out(0);
  if (t.splits > 1)
    out = written(builder.scratch(p.m * p.n * 4 * int64_t{t.splits}));
  launch& l = builder.add(stem + "." + tile_variant(family, variant, t), groups,
                          {a, b, builder.in(call.has_input(2) ? 2 : 0), builder.in(call.has_input(3) ? 3 : 0), out});
  l.constants = t.constants();
  l.constants.insert(l.constants.end(),
                     {i.a, i.b, flags, static_cast<uint32_t>(c.epilogue.act.code), i.channel_last ? 1u : 0u});
  l.params = conv_parameters(c, p, t);
  if (t.splits > 1) {
    out.written = false;
    add_split_sum(builder, call, p, t, out);
  }
  return tiled_list(builder, call, t);
}

/// Its ways, the fastest by the model first.
launch_lists implicit_tiles(const gpu_call& call, const conv_call& c, const implicit_product& i, tile_family family,
                            const std::string& variant) {
  const float_product& p = i.p;
  const bool gathers = i.a != shader::depth_vectors || i.b != shader::depth_vectors;
  const bool may_split = has_even_rows(c) && c.groups == 1;
  launch_lists lists;
  const product_size size{.m = p.m,
                          .n = p.n,
                          .k = p.k,
                          .batches = c.groups,
                          .gathers = gathers,
                          .slices = tries_slices(call.inputs[0].type, call)};
  for (const tiling& t : list_tilings(size, family, may_split, call.gpu, call.ways, call.tiles))
    if (auto list = with_tile(call, c, i, family, variant, t))
      lists.push_back(std::move(*list));
  return lists;
}

launch_lists implicit_tiles(const gpu_call& call, const conv_call& c, tile_family family, const std::string& variant) {
  return implicit_tiles(call, c, implicit(c, product_width(family), call.inputs[1].constant != nullptr), family,
                        variant);
}

/// Those by a packed image; none if that does not suit.
launch_lists packed_tiles(const gpu_call& call, const conv_call& c, tile_family family, const std::string& variant) {
  auto image = packed_image_of(call, c);
  if (!image || family != tile_family::cooperative)
    return {};
  const implicit_product i = implicit(std::move(*image));
  return implicit_tiles(call, i.packed->call, i, family, variant);
}

/// The kernel for one input channel a group; nullopt if it does not suit. `pixels`: of an invocation; 0: as many as the
/// device's size suggests.
std::optional<launch_list> depthwise(const gpu_call& call, const conv_call& c, const std::string& variant,
                                     uint32_t pixels = 0) {
  const auto s = depthwise_shape_of(c, call.gpu, pixels);
  if (!s)
    return std::nullopt;
  launch_builder builder(call, "depthwise");
  launch_binding weights = builder.in(1);
  uint32_t flags = c.epilogue.flags();
  if (s->vectors && call.inputs[1].constant) {
    flags |= shader::product_taps_first;
    if (c.taps() > 1)
      weights = builder.packed(1, {c.filters, c.taps()}, {1, 0});
  }
  launch& l = builder.add("depthwise." + variant, flat_groups(s->count, 128, call.gpu),
                          {builder.in(0), weights, builder.in(call.has_input(2) ? 2 : 0),
                           builder.in(call.has_input(3) ? 3 : 0), builder.out(0)});
  l.constants = s->constants(c, flags);
  l.params = depthwise_parameters(c, *s);
  return builder.finish();
}

bool addressable(const gpu_call& call) {
  const operand& y = call.outputs[0];
  if (call.has_input(3) && call.inputs[3].layout != y.layout && !same_in_both_layouts(y.dims))
    return false;
  for (const operand* o : {&call.inputs[0], &call.inputs[1], &y})
    if (o->stored_size() >= index_limit)
      return false;
  return true;
}

/// Whether the windows of a transposed convolution, with input and output exchanged, tile the output.
bool tile_output(const window_axes& axes) {
  return std::all_of(axes.begin(), axes.end(), [](const window_axis& a) {
    return a.kernel == a.stride && (a.kernel == 1 || a.dilation == 1) && a.pad_begin == 0 && a.in == a.out * a.stride;
  });
}

/// Returns the product that such a convolution by constants is, where channels come last. Each row of a tile is a
/// matrix, whose columns are pixels and filters; each row of the input is multiplied by all of them, and these products
/// are the output's rows, in order.
std::optional<float_product> tiling_product(const gpu_call& call, const window_axes& axes, const product_epilogue& e) {
  const operand &x = call.inputs[0], &weights = call.inputs[1];
  const auto& [d, h, w] = axes;
  const bool bias_fits = !call.has_input(2) || w.kernel == 1 || call.inputs[2].constant;
  if (!weights.constant || !bias_fits || call.attrs.integer("group", 1) != 1 || !tile_output(axes) ||
      steps_of(x).channel != 1 || steps_of(call.outputs[0]).channel != 1)
    return std::nullopt;
  const int64_t channels = x.dims[1], filters = weights.dims[1], pitch = packed_pitch(channels);
  float_product p{.m = w.out, .n = w.kernel * filters, .k = channels, .a_line = channels, .epilogue = e};
  p.made_b = pack(weights.constant, {channels, filters, d.kernel, h.kernel, w.kernel}, {2, 3, 4, 1, 0},
                  {d.kernel, h.kernel, w.kernel, filters, pitch});
  if (call.has_input(2) && w.kernel > 1)
    p.epilogue.made_bias = repeat(call.inputs[2].constant, w.kernel);
  int64_t a_step = w.out * channels, b_step = p.n * pitch;
  const auto add_rows = [&](int64_t count) { // of the input
    if (p.batch.empty())
      p.m *= count;
    else if (p.batch.back().b == 0)
      p.batch.back().size *= count;
    else
      p.batch.push_back({count, a_step, 0});
    a_step *= count;
  };
  for (const window_axis& axis : {h, d}) {
    if (axis.kernel > 1)
      p.batch.push_back({axis.kernel, 0, b_step});
    b_step *= axis.kernel;
    add_rows(axis.out);
  }
  add_rows(x.dims[0]);
  return p;
}

launch_lists conv_launches(const gpu_call& call) {
  const auto variant = product_variant(call.inputs[0].type, call.gpu);
  if (!variant || !addressable(call))
    return {};
  const conv_call c = parse_convolution(call, epilogue_of(call));
  const bool writes = c.out.channel == 1 && can_write(call.outputs[0], c.images * c.outputs(), c.epilogue);
  if (call.outputs[0].is_part() && !writes)
    return {};
  launch_lists lists;
  if (c.pointwise() && c.groups == 1 && c.channels_last()) {
    float_product p;
    p.m = c.images * c.outputs();
    p.n = c.filters;
    p.k = p.a_line = p.b_line = c.channels;
    p.epilogue = c.epilogue;
    lists = product_launches(call, p);
  }
  for (const uint32_t pixels : {0u, 1u, 2u, 4u})
    if (pixels == 0 || call.ways == way_range::every)
      if (auto list = depthwise(call, c, *variant, pixels))
        lists.push_back(std::move(*list));
  launch_lists tiled = implicit_tiles(call, c, tile_family::tiled, *variant), matrices;
  if (const auto family = cooperative_family(call.inputs[0].type, call.gpu)) {
    add_lists(lists, packed_tiles(call, c, *family, *variant));
    matrices = implicit_tiles(call, c, *family, *variant);
    // A first 3 × 3 layer of images takes tiles of sums 8.3 instead of 9.9 µs on an H100, of 32 images 82 instead of
    // 133.
    if (constexpr int64_t vector = 8; *family == tile_family::cooperative && c.is_short_and_gathered(vector))
      std::swap(tiled, matrices);
  }
  add_by_speed(lists, call.inputs[0].type, call.gpu, std::move(matrices), std::move(tiled));
  return lists;
}

launch_lists conv_transpose_launches(const gpu_call& call) {
  const auto variant = product_variant(call.inputs[0].type, call.gpu);
  if (!variant || !addressable(call) || call.gpu.max_group_size < 128)
    return {};
  const operand &x = call.inputs[0], &w = call.inputs[1], &y = call.outputs[0];
  const window_axes axes = transpose_axes(call.attrs, x.dims, w.dims); // input and output exchanged
  const auto& [d, h, v] = axes;
  const int64_t groups = call.attrs.integer("group", 1);
  const spatial_steps in = steps_of(x), out = steps_of(y);
  const product_epilogue e = epilogue_of(call);
  launch_lists lists;
  if (const auto p = tiling_product(call, axes, e))
    lists = product_launches(call, *p);
  launch_builder builder(call, "conv_transpose");
  launch& l = builder.add("conv_transpose." + *variant, flat_groups(y.size(), 128, call.gpu),
                          {builder.in(0), builder.in(1), builder.in(call.has_input(2) ? 2 : 0),
                           builder.in(call.has_input(3) ? 3 : 0), builder.out(0)});
  l.constants = {e.flags(), static_cast<uint32_t>(e.act.code)};
  l.params = words_of(shader::conv_transpose{.count = y.size(),
                                             .channels = x.dims[1] / groups,
                                             .filters = w.dims[1],
                                             .in_image = in.image,
                                             .in_channel = in.channel,
                                             .in_pixel = in.pixel,
                                             .groups = groups,
                                             .out_image = out.image,
                                             .out_channel = out.channel,
                                             .out_pixel = out.pixel,
                                             .channels_first = out.channel != 1,
                                             .act_alpha = e.act.alpha,
                                             .act_beta = e.act.beta,
                                             .in_size = {d.out, h.out, v.out},
                                             .out_size = {d.in, h.in, v.in},
                                             .kernel = {d.kernel, h.kernel, v.kernel},
                                             .stride = {d.stride, h.stride, v.stride},
                                             .dilation = {d.dilation, h.dilation, v.dilation},
                                             .pad = {d.pad_begin, h.pad_begin, v.pad_begin}});
  if (auto list = builder.finish())
    lists.push_back(std::move(*list));
  return lists;
}

} // namespace

extern constinit const launch_rows conv_rules = {
    {"", "Conv", conv_launches, 1, true},
    {"", "ConvTranspose", conv_transpose_launches},
    {"troupe", "Conv", conv_launches, 1, true},
    {"troupe", "ConvTranspose", conv_transpose_launches},
};

} // namespace troupe

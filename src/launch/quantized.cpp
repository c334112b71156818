// GPU launches of troupe.QuantizedMatMul and troupe.QuantizedConv: a convolution is a product of bytes if its kernel is
// one pixel, an implicit product otherwise (shaders/quantized_conv.comp), and has a kernel of its own for one channel a
// group.
#include "base/round_up.hpp"
#include "launch/byte_product.hpp"
#include "launch/convolution.hpp"
#include "launch/launch_rules.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// The sizes of the implicit product, and how its operands are read.
struct implicit_bytes {
  float_product p;
  bool channel_last = false; // depth order: taps, then channels
  uint32_t a = shader::line_elements;
};

implicit_bytes implicit(const conv_call& c, bool constant_weights) {
  implicit_bytes i{.p = product_of(c)};
  const int64_t channels = c.channels / c.groups;
  if (c.in.channel == 1) {
    i.channel_last = constant_weights || c.taps() == 1 || channels == 1;
    const uint32_t mode = std::max(byte_mode(channels), byte_mode(c.channels));
    // Neighbouring invocations share a tap where there are few channels: then those beyond the depth load nothing
    // together.
    const uint32_t gathered = channels < 4 ? shader::line_elements : shader::depth_elements;
    i.a = i.channel_last && channels % 4 == 0 && c.channels % 4 == 0 ? mode : gathered;
  }
  return i;
}

std::optional<launch_list> with_tile(const gpu_call& call, const conv_call& c, const byte_scaling& s, implicit_bytes i,
                                     byte_kernel kernel, const tiling& t) {
  const bool matrices = kernel == byte_kernel::matrices, constant = call.inputs[byte_inputs::b].constant != nullptr;
  launch_builder b(call, std::string("quantized_conv.") + (matrices                     ? "cooperative"
                                                           : kernel == byte_kernel::dot ? "dot"
                                                                                        : "plain"));
  launch_binding bytes = b.in(byte_inputs::b);
  std::optional<launch_binding> sums;
  uint32_t b_mode = shader::depth_elements;
  if (constant && i.p.k > 0) {
    const shape order = i.channel_last ? shape{0, 2, 1} : shape{0, 1, 2};
    const byte_columns packed =
        pack_columns(b, call, s, {c.filters, c.channels / c.groups, c.taps()}, order, c.filters, i.p.k);
    bytes = packed.bytes;
    sums = packed.sums;
    i.p.b_line = packed.pitch;
    b_mode = shader::depth_vectors;
  }
  if (matrices && b_mode != shader::depth_vectors)
    return std::nullopt;
  const bool rows = c.out.channel == 1;
  uint32_t flags = s.flags | (rows ? 0 : shader::product_strided_out) | (sums ? shader::quantized_column_sums : 0);
  flags |= rows && i.p.n % (matrices ? 8 : 4) == 0 ? shader::product_vector_out : 0;
  const auto groups = product_groups(i.p, t);
  flags |= tile_flags(t, groups, c.groups, call.gpu);
  launch& l = b.add(byte_shader("quantized_conv", kernel, t), groups, byte_bindings(b, call, bytes, sums));
  l.constants = t.constants();
  l.constants.insert(l.constants.end(),
                     {i.a, b_mode, flags, static_cast<uint32_t>(s.act.code), i.channel_last ? 1u : 0u});
  l.params = conv_parameters(c, i.p, t);
  add_numbers(l, s);
  return tiled_list(b, call, t);
}

/// The ways of one kernel of implicit products.
launch_lists implicit_tiles(const gpu_call& call, const conv_call& c, const byte_scaling& s, byte_kernel kernel) {
  const implicit_bytes i = implicit(c, call.inputs[byte_inputs::b].constant != nullptr);
  const bool gathers = i.a == shader::depth_elements || i.a == shader::line_elements;
  launch_lists lists;
  for (const tiling& t : byte_tilings(i.p, kernel, gathers, call))
    if (auto list = with_tile(call, c, s, i, kernel, t))
      lists.push_back(std::move(*list));
  return lists;
}

/// Whether dot products are faster than matrices: if there are many tiles, too. A first 3 × 3 layer of 8 images takes
/// 25 instead of 32 µs on an H200, of 32 images 70 instead of 98, of one 9.1 instead of 8.3.
bool prefers_dot(const conv_call& c, const gpu_features& gpu) {
  constexpr int64_t vector = 4, tile = 32 * 32, many = 8; // tiles of a multiprocessor
  return c.is_short_and_gathered(vector) && c.images * c.outputs() * c.filters >= tile * many * gpu.units;
}

/// The kernel for one input channel a group; nullopt if it does not suit.
std::optional<launch_list> depthwise(const gpu_call& call, const conv_call& c, const byte_scaling& s) {
  const auto form = depthwise_shape_of(c, call.gpu);
  if (!form || s.has(shader::product_residual))
    return std::nullopt;
  launch_builder b(call, "quantized_depthwise");
  launch_binding weights = b.in(byte_inputs::b);
  uint32_t flags = s.flags;
  if (form->vectors && call.inputs[byte_inputs::b].constant) {
    flags |= shader::product_taps_first;
    if (c.taps() > 1)
      weights = b.packed(byte_inputs::b, {c.filters, c.taps()}, {1, 0});
  }
  launch& l = b.add("quantized_depthwise.i8", flat_groups(form->count, 128, call.gpu),
                    byte_bindings(b, call, weights, std::nullopt));
  l.constants = form->constants(c, flags);
  l.params = depthwise_parameters(c, *form);
  add_numbers(l, s);
  return b.finish();
}

launch_lists quantized_matmul_launches(const gpu_call& call) {
  const shape &a = call.inputs.at(byte_inputs::a).dims, &b = call.inputs.at(byte_inputs::b).dims;
  if (a.empty() || b.empty())
    return {};
  const auto s = byte_scaling_of(call, b.size() > 1 ? b.back() : 1);
  return s ? byte_product_launches(call, stacked_product(a, b, false, false), *s) : launch_lists{};
}

launch_lists quantized_conv_launches(const gpu_call& call) {
  const auto s = byte_scaling_of(call, call.inputs.at(byte_inputs::b).dims.at(0));
  if (!s)
    return {};
  const conv_call c = parse_convolution(call, byte_epilogue(*s));
  if (c.pointwise() && c.groups == 1 && c.channels_last()) {
    float_product p;
    p.m = c.images * c.outputs();
    p.n = c.filters;
    p.k = p.a_line = p.b_line = c.channels;
    return byte_product_launches(call, p, *s);
  }
  launch_lists lists;
  if (auto list = depthwise(call, c, *s))
    lists.push_back(std::move(*list));
  std::vector<byte_kernel> kernels = byte_kernels(call.gpu, *s, call.inputs[byte_inputs::b].constant != nullptr);
  if (prefers_dot(c, call.gpu))
    if (const auto dot = std::ranges::find(kernels, byte_kernel::dot); dot != kernels.end())
      std::rotate(kernels.begin(), dot, dot + 1);
  for (const byte_kernel kernel : kernels)
    add_lists(lists, implicit_tiles(call, c, *s, kernel));
  return lists;
}

} // namespace

extern constinit const launch_rows quantized_rules = {
    {"troupe", "QuantizedConv", quantized_conv_launches},
    {"troupe", "QuantizedMatMul", quantized_matmul_launches},
};

} // namespace troupe

// GPU launches of MatMulInteger, QLinearMatMul, ConvInteger and QLinearConv (shaders/integer_product.glsl).
#include "launch/launch_rules.hpp"
#include "launch/parameters.hpp"
#include "ops/window.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Where the operands stand among a call's inputs; scales and what follows are SIZE_MAX if sums are not quantised.
struct positions {
  size_t b, a_zero, b_zero;
  size_t a_scale = SIZE_MAX, b_scale = SIZE_MAX, y_scale = SIZE_MAX, y_zero = SIZE_MAX;

  bool quantised() const { return y_scale != SIZE_MAX; }
};

constexpr positions matmul_integer{1, 2, 3}, qlinear_matmul{3, 2, 5, 1, 4, 6, 7};
constexpr positions conv_integer{1, 2, 3}, qlinear_conv{3, 2, 5, 1, 4, 6, 7};

/// Returns how input `i` is spread over `count` rows or columns; nullopt for other sizes and types.
std::optional<uint32_t> spread(const gpu_call& call, size_t i, dtype type, int64_t count) {
  if (!call.has_input(i))
    return shader::spread_none;
  const operand& o = call.inputs[i];
  if (o.type != type || (o.size() != 1 && o.size() != count))
    return std::nullopt;
  return o.size() == 1 ? shader::spread_one : shader::spread_each;
}

bool is_byte(dtype type) {
  return type == dtype::uint8 || type == dtype::int8;
}

/// Adds the launch of an integer product of `rows` × `columns`; null if the operands' types or sizes do not fit it.
launch* add_product(launch_builder& b, const gpu_call& call, const positions& at, const std::string& stem, int64_t rows,
                    int64_t columns, std::array<uint32_t, 3> groups) {
  const dtype left = call.inputs.at(0).type, right = call.inputs.at(at.b).type, y = call.outputs.at(0).type;
  const auto a_zero = spread(call, at.a_zero, left, rows), b_zero = spread(call, at.b_zero, right, columns);
  const bool large =
      std::any_of(call.inputs.begin(), call.inputs.end(), [](auto& o) { return o.size() >= index_limit; });
  if (!call.gpu.int8 || !is_byte(left) || !is_byte(right) || !a_zero || !b_zero || large ||
      call.outputs[0].size() >= index_limit)
    return nullptr;
  std::vector<launch_binding> bindings{b.in(0), b.in(at.b), b.in(*a_zero ? at.a_zero : 0),
                                       b.in(*b_zero ? at.b_zero : at.b), b.out(0)};
  std::vector<uint32_t> constants{shader::result_sums, *a_zero, *b_zero, shader::spread_one, shader::spread_one};
  if (at.quantised()) {
    const auto a_scale = spread(call, at.a_scale, dtype::float32, rows);
    const auto b_scale = spread(call, at.b_scale, dtype::float32, columns);
    if (!a_scale || !b_scale || spread(call, at.y_scale, dtype::float32, 1) != shader::spread_one ||
        spread(call, at.y_zero, y, 1) != shader::spread_one || !is_byte(y))
      return nullptr;
    constants = {y == dtype::uint8 ? shader::result_uint8 : shader::result_int8, *a_zero, *b_zero, *a_scale, *b_scale};
    bindings.insert(bindings.end(), {b.in(at.a_scale), b.in(at.b_scale), b.in(at.y_scale), b.in(at.y_zero)});
  }
  bindings.resize(9, bindings[0]);
  const auto name = [](dtype type) { return type == dtype::uint8 ? "u8" : "i8"; };
  launch& l = b.add(fmt::format("{}.{}_{}", stem, name(left), name(right)), groups, std::move(bindings));
  l.constants = std::move(constants);
  return &l;
}

launch_lists matmul(const gpu_call& call, const positions& at) {
  shape a = call.inputs.at(0).dims, b = call.inputs.at(at.b).dims;
  if (a.empty() || b.empty())
    return {};
  if (a.size() == 1)
    a.insert(a.begin(), 1);
  if (b.size() == 1)
    b.push_back(1);
  const int64_t m = a[a.size() - 2], k = a.back(), n = b.back();
  const size_t axes = std::max(a.size(), b.size()) - 2;
  shader::matmul_integer block{.M = m, .N = n, .K = k, .batch_rank = axes};
  if (axes > std::size(block.batch_axes))
    return {};
  int64_t batches = 1, a_step = m * k, b_step = k * n;
  for (size_t i = 0; i < axes; ++i) {
    const int64_t a_size = i + 2 < a.size() ? a[a.size() - 3 - i] : 1,
                  b_size = i + 2 < b.size() ? b[b.size() - 3 - i] : 1;
    const int64_t size = a_size == 1 ? b_size : a_size;
    block.batch_axes[i] = {size, a_size == 1 ? 0 : a_step, b_size == 1 ? 0 : b_step};
    a_step *= a_size;
    b_step *= b_size;
    batches *= size;
  }
  launch_builder builder(call, "matmul_integer");
  const auto tiles = [](int64_t count) { return static_cast<uint32_t>((count + 15) / 16); };
  launch* l =
      add_product(builder, call, at, "matmul_integer", m, n, {tiles(n), tiles(m), static_cast<uint32_t>(batches)});
  if (!l)
    return {};
  l->params = words_of(block);
  return single_list(builder);
}

launch_lists conv(const gpu_call& call, const positions& at) {
  const auto is_plain = [](const operand& o) { return o.layout == layout::plain; };
  if (!std::all_of(call.inputs.begin(), call.inputs.end(), is_plain) || !is_plain(call.outputs.at(0)))
    return {};
  const shape &x = call.inputs.at(0).dims, &w = call.inputs.at(at.b).dims, &y = call.outputs.at(0).dims;
  const size_t bias = at.quantised() ? 8 : SIZE_MAX;
  const bool has_bias = bias != SIZE_MAX && call.has_input(bias);
  if (has_bias && (call.inputs[bias].type != dtype::int32 || call.inputs[bias].size() != w[0]))
    return {};
  launch_builder builder(call, "conv_integer");
  const int64_t count = volume(y), groups = call.attrs.integer("group", 1);
  launch* l = add_product(builder, call, at, "conv_integer", 1, w[0], flat_groups(count, 256, call.gpu));
  if (!l)
    return {};
  l->bindings.push_back(builder.in(has_bias ? bias : 0));
  l->constants.push_back(has_bias ? 1 : 0);
  const window_spec spec = parse_window(call.attrs, {w.begin() + 2, w.end()});
  const auto& [d, h, v] = bind_window(spec, std::span(x).subspan(2));
  l->params = words_of(shader::conv_integer{.count = count,
                                            .filter_channels = w[1],
                                            .filters = w[0],
                                            .per_group = w[0] / groups,
                                            .in_size = {d.in, h.in, v.in},
                                            .out_size = {d.out, h.out, v.out},
                                            .kernel = {d.kernel, h.kernel, v.kernel},
                                            .stride = {d.stride, h.stride, v.stride},
                                            .dilation = {d.dilation, h.dilation, v.dilation},
                                            .pad = {d.pad_begin, h.pad_begin, v.pad_begin}});
  return single_list(builder);
}

} // namespace

extern constinit const launch_rows integer_product_rules = {
    {"", "ConvInteger", [](const gpu_call& c) { return conv(c, conv_integer); }},
    {"", "MatMulInteger", [](const gpu_call& c) { return matmul(c, matmul_integer); }},
    {"", "QLinearConv", [](const gpu_call& c) { return conv(c, qlinear_conv); }},
    {"", "QLinearMatMul", [](const gpu_call& c) { return matmul(c, qlinear_matmul); }},
};

} // namespace troupe

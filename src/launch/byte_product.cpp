#include "launch/byte_product.hpp"

#include "base/round_up.hpp"
#include "launch/parameters.hpp"
#include "ops/pack.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace troupe {
namespace {

/// Bytes of the widest load.
constexpr int64_t vector_bytes = 16;

bool holds_bytes(dtype type) {
  return type == dtype::uint8 || type == dtype::int8;
}

/// How a parameter is spread over columns.
enum class spreading : uint8_t { none, one, each };

/// Returns nullopt for other types and sizes.
std::optional<spreading> spread_of(const gpu_call& call, size_t i, dtype type, int64_t columns) {
  if (!call.has_input(i))
    return spreading::none;
  const operand& o = call.inputs[i];
  if (o.type != type || (o.size() != 1 && o.size() != columns))
    return std::nullopt;
  return o.size() == 1 ? spreading::one : spreading::each;
}

/// Bytes that a depth of the kernel's tile takes (tiling.cpp): of floats' shared memory, or of a pair of bytes for
/// a float16.
int64_t tile_unit(byte_kernel kernel) {
  return kernel == byte_kernel::matrices ? 2 : 4;
}

std::optional<launch_list> matmul(const gpu_call& call, float_product p, const byte_scaling& s, byte_kernel kernel,
                                  const tiling& t) {
  launch_builder b(call, std::string("quantized_matmul.") + (kernel == byte_kernel::matrices ? "cooperative"
                                                             : kernel == byte_kernel::dot    ? "dot"
                                                                                             : "plain"));
  const operand& right = call.inputs[byte_inputs::b];
  const int64_t matrix = p.n * p.k;
  launch_binding bytes = b.in(byte_inputs::b);
  std::optional<launch_binding> sums;
  const bool packs = right.constant && matrix != 0 && right.size() % matrix == 0;
  if (packs) {
    const int64_t matrices = right.size() / matrix;
    const bool by_columns = p.b_depth == 1;
    const shape dims = by_columns ? shape{matrices, p.n, p.k} : shape{matrices, p.k, p.n};
    const byte_columns c =
        pack_columns(b, call, s, dims, by_columns ? shape{0, 1, 2} : shape{0, 2, 1}, matrices * p.n, p.k);
    bytes = c.bytes;
    if (matrices == 1)
      sums = c.sums;
    for (batch_axis& axis : p.batch)
      axis.b = axis.b / matrix * p.n * c.pitch;
    p.b_line = c.pitch;
    p.b_depth = 1;
  }
  if (kernel == byte_kernel::matrices && !packs)
    return std::nullopt;
  if (kernel == byte_kernel::matrices && !s.a_centred() && !sums)
    return std::nullopt;
  const uint32_t a_mode = byte_mode(p.k), b_mode = packs            ? shader::depth_vectors
                                                   : p.b_depth == 1 ? shader::depth_elements
                                                                    : shader::line_elements;
  const int64_t width = kernel == byte_kernel::matrices ? 8 : 4;
  uint32_t flags = s.flags | (p.n % width == 0 ? shader::product_vector_out : 0);
  flags |= sums ? shader::quantized_column_sums : 0;
  p.epilogue = byte_epilogue(s);
  const auto groups = product_groups(p, t);
  flags |= tile_flags(t, groups, p.batches(), call.gpu);
  launch& l = b.add(byte_shader("quantized_matmul", kernel, t), groups, byte_bindings(b, call, bytes, sums));
  l.constants = t.constants();
  l.constants.insert(l.constants.end(), {a_mode, b_mode, flags, static_cast<uint32_t>(s.act.code)});
  l.params = stack_parameters(p, t, {.row = p.n}, 0);
  add_numbers(l, s);
  return tiled_list(b, call, t);
}

/// Returns the type of the results before a residual is added.
dtype own_type(const gpu_call& call) {
  if (!call.has_input(byte_inputs::r))
    return call.outputs.at(0).type;
  return call.has_input(byte_inputs::y_zero) ? call.inputs[byte_inputs::y_zero].type : dtype::uint8;
}

/// Returns the bits of a constant of one element.
uint32_t bits_of(const weight& w) {
  uint32_t bits = 0;
  expects(w.leaf.bytes() <= static_cast<int64_t>(sizeof(bits)), "a single number is longer than a word");
  std::memcpy(&bits, w.leaf.data(), static_cast<size_t>(w.leaf.bytes()));
  return bits;
}

/// Returns what a call has one of, if all of that is constant.
std::optional<shader::quantized_numbers> known_numbers(const gpu_call& call) {
  const bool sums = call.has_input(byte_inputs::r);
  const auto given = [&](size_t i) { return call.has_input(i) && (sums || i < byte_inputs::r); };
  for (const size_t i : byte_inputs::singles)
    if (given(i) && !(call.inputs[i].constant && call.inputs[i].constant->leaf.defined()))
      return std::nullopt;
  const auto bits = [&](size_t i) { return given(i) ? bits_of(*call.inputs[i].constant) : 0; };
  const auto scale = [&](size_t i) { return std::bit_cast<float>(bits(i)); };
  return shader::quantized_numbers{.a_scale = scale(byte_inputs::a_scale),
                                   .y_scale = scale(byte_inputs::y_scale),
                                   .r_scale = scale(byte_inputs::r_scale),
                                   .z_scale = scale(byte_inputs::z_scale),
                                   .y_inverse = 1 / scale(byte_inputs::y_scale),
                                   .z_inverse = 1 / scale(byte_inputs::z_scale),
                                   .a_zero = bits(byte_inputs::a_zero),
                                   .y_zero = bits(byte_inputs::y_zero),
                                   .r_zero = bits(byte_inputs::r_zero),
                                   .z_zero = bits(byte_inputs::z_zero)};
}

/// Adds what a call says of its residual, if it has one; returns whether the kernels take it.
bool add_residual(byte_scaling& s, const gpu_call& call) {
  if (!call.has_input(byte_inputs::r))
    return true;
  const operand &r = call.inputs[byte_inputs::r], &z = call.outputs[0];
  const auto r_scale = spread_of(call, byte_inputs::r_scale, dtype::float32, 1),
             r_zero = spread_of(call, byte_inputs::r_zero, r.type, 1),
             z_scale = spread_of(call, byte_inputs::z_scale, dtype::float32, 1),
             z_zero = spread_of(call, byte_inputs::z_zero, z.type, 1);
  const bool laid_alike = r.layout == z.layout || same_in_both_layouts(z.dims);
  if (!r_scale || !r_zero || !z_scale || !z_zero || !laid_alike || !holds_bytes(r.type) || r.size() != z.size())
    return false;
  s.flags |= shader::product_residual | (r.type == dtype::uint8 ? shader::quantized_r_unsigned : 0) |
             (*r_zero != spreading::none ? shader::quantized_r_zero : 0) |
             (z.type == dtype::int8 ? shader::quantized_z_signed : 0) |
             (*z_zero != spreading::none ? shader::quantized_z_zero : 0);
  s.sum_low = static_cast<float>(call.attrs.real("sum_low"));
  s.sum_high = static_cast<float>(call.attrs.real("sum_high"));
  return true;
}

} // namespace

bool byte_scaling::a_centred() const {
  return !has(shader::quantized_a_unsigned | shader::quantized_a_zero);
}

bool byte_scaling::b_centred() const {
  return !has(shader::quantized_b_unsigned | shader::quantized_b_zero);
}

std::optional<byte_scaling> byte_scaling_of(const gpu_call& call, int64_t columns) {
  const dtype a = call.inputs.at(byte_inputs::a).type, b = call.inputs.at(byte_inputs::b).type, y = own_type(call);
  const bool large =
      std::ranges::any_of(call.inputs, [](const operand& o) { return o.present() && o.size() >= index_limit; });
  if (!call.gpu.int8 || !holds_bytes(a) || !holds_bytes(b) || large || call.outputs[0].size() >= index_limit)
    return std::nullopt;
  const auto a_scale = spread_of(call, byte_inputs::a_scale, dtype::float32, 1),
             a_zero = spread_of(call, byte_inputs::a_zero, a, 1);
  const auto b_scale = spread_of(call, byte_inputs::b_scale, dtype::float32, columns),
             b_zero = spread_of(call, byte_inputs::b_zero, b, columns),
             bias = spread_of(call, byte_inputs::bias, dtype::float32, columns);
  const auto y_scale = spread_of(call, byte_inputs::y_scale, dtype::float32, 1),
             y_zero = spread_of(call, byte_inputs::y_zero, y, 1);
  if (!a_scale || !a_zero || !b_scale || !b_zero || !bias || !y_scale || !y_zero)
    return std::nullopt;
  byte_scaling s;
  s.act = parse_activation(call.attrs);
  const auto set = [&](bool holds, uint32_t flag) { s.flags |= holds ? flag : 0; };
  set(a == dtype::uint8, shader::quantized_a_unsigned);
  set(b == dtype::uint8, shader::quantized_b_unsigned);
  set(*a_zero != spreading::none, shader::quantized_a_zero);
  set(*b_zero != spreading::none, shader::quantized_b_zero);
  set(*b_zero == spreading::each, shader::quantized_b_zeros);
  set(*b_scale == spreading::each, shader::quantized_b_scales);
  set(*bias != spreading::none, shader::product_bias);
  set(*bias == spreading::each, shader::quantized_biases);
  set(*y_scale != spreading::none, shader::quantized_out);
  set(*y_scale != spreading::none && y == dtype::int8, shader::quantized_out_signed);
  set(*y_zero != spreading::none, shader::quantized_out_zero);
  if (!add_residual(s, call))
    return std::nullopt;
  s.known = known_numbers(call);
  set(s.known.has_value(), shader::quantized_known);
  return s;
}

product_epilogue byte_epilogue(const byte_scaling& s) {
  product_epilogue e;
  e.act = s.act;
  e.alpha = s.sum_low;
  e.beta = s.sum_high;
  return e;
}

byte_columns pack_columns(launch_builder& b, const gpu_call& call, const byte_scaling& s, const shape& dims,
                          const shape& order, int64_t columns, int64_t depth) {
  byte_columns c;
  c.pitch = round_up(depth, vector_bytes);
  weight_ptr w = call.inputs[byte_inputs::b].constant;
  if (!std::ranges::is_sorted(order))
    w = pack(w, dims, order);
  w = pack(w, {columns, depth}, {0, 1}, {columns, c.pitch});
  c.bytes = b.made(w);
  if (!s.a_centred() && s.b_centred())
    c.sums = b.made(sum_rows(w));
  return c;
}

std::vector<launch_binding> byte_bindings(launch_builder& b, const gpu_call& call, const launch_binding& right,
                                          const std::optional<launch_binding>& sums) {
  std::vector<launch_binding> bindings{b.in(byte_inputs::a), right};
  for (const size_t i : {byte_inputs::a_scale, byte_inputs::b_scale, byte_inputs::a_zero, byte_inputs::b_zero,
                         byte_inputs::bias, byte_inputs::y_scale, byte_inputs::y_zero})
    bindings.push_back(b.in(call.has_input(i) ? i : byte_inputs::a_scale));
  bindings.push_back(sums.value_or(b.in(byte_inputs::a_scale)));
  bindings.push_back(b.out(0));
  for (size_t i = byte_inputs::r; i <= byte_inputs::z_zero; ++i)
    bindings.push_back(b.in(call.has_input(i) ? i : byte_inputs::a_scale));
  return bindings;
}

void add_numbers(launch& l, const byte_scaling& s) {
  expects(l.params.size() <= shader::quantized_numbers_at, "a block has no room for scales and zero points");
  if (!s.known)
    return;
  l.params.resize(shader::quantized_numbers_at);
  const std::vector<uint32_t> words = words_of(*s.known);
  l.params.insert(l.params.end(), words.begin(), words.end());
  l.read_words = std::ssize(words);
}

std::vector<byte_kernel> byte_kernels(const gpu_features& gpu, const byte_scaling& s, bool constant_columns) {
  std::vector<byte_kernel> kernels;
  if (gpu.byte_matrices && gpu.subgroup_size == 32 && constant_columns && s.b_centred())
    kernels.push_back(byte_kernel::matrices);
  if (gpu.integer_dot)
    kernels.push_back(byte_kernel::dot);
  kernels.push_back(byte_kernel::plain);
  return kernels;
}

std::vector<tiling> byte_tilings(const float_product& p, byte_kernel kernel, bool gathers, const gpu_call& call) {
  const int64_t unit = tile_unit(kernel);
  const tile_family family = kernel == byte_kernel::matrices ? tile_family::cooperative_bytes : tile_family::tiled;
  const product_size size{p.m, p.n, ceil_div(p.k, unit), p.batches(), gathers};
  std::vector<tiling> list = list_tilings(size, family, false, call.gpu, call.ways, call.tiles);
  for (tiling& t : list) {
    t.depth *= word(unit);
    t.split_depth *= word(unit);
  }
  return list;
}

std::string byte_shader(const std::string& stem, byte_kernel kernel, const tiling& t) {
  switch (kernel) {
    case byte_kernel::matrices: return stem + "_cooperative." + tile_variant(tile_family::cooperative_bytes, "i8", t);
    case byte_kernel::dot: return stem + ".dot";
    case byte_kernel::plain: break;
  }
  return stem + ".plain";
}

uint32_t byte_mode(int64_t depth) {
  return depth % vector_bytes == 0 ? shader::depth_vectors
         : depth % 4 == 0          ? shader::depth_words
                                   : shader::depth_elements;
}

launch_lists byte_product_launches(const gpu_call& call, const float_product& p, const byte_scaling& s) {
  launch_lists lists;
  if (p.batch.size() > std::size(shader::matmul{}.batch_axes))
    return lists;
  for (const byte_kernel kernel : byte_kernels(call.gpu, s, call.inputs[byte_inputs::b].constant != nullptr))
    for (const tiling& t : byte_tilings(p, kernel, byte_mode(p.k) == shader::depth_elements, call))
      if (auto list = matmul(call, p, s, kernel, t))
        lists.push_back(std::move(*list));
  return lists;
}

} // namespace troupe

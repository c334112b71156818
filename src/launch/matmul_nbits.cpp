// GPU launches of MatMulNBits: shaders/matmul_nbits.comp reads the codes where rows are few; otherwise the weights are
// dequantised to scratch memory once, and a float product follows.
#include "launch/few_rows.hpp"
#include "launch/launch_rules.hpp"
#include "launch/parameters.hpp"

#include <algorithm>
#include <bit>

namespace troupe {
namespace {

constexpr size_t codes = 1, scales = 2, zeros = 3, offset = 5; // inputs

/// The call, checked.
struct nbits_call {
  const gpu_call& call;
  nbits_shape s;
  std::string variant;
  int64_t rows;

  uint32_t zero_mode() const {
    if (!call.has_input(zeros))
      return shader::zeros_absent;
    return call.inputs[zeros].type == dtype::uint8 ? shader::zeros_packed : shader::zeros_whole;
  }
  std::vector<uint32_t> parameters(int64_t first_column, int64_t columns) const {
    return words_of(shader::nbits{.K = s.k,
                                  .N = s.n,
                                  .block_shift = std::countr_zero(static_cast<uint64_t>(s.block_size)),
                                  .blocks = s.blocks,
                                  .column_words = s.blocks * s.block_bytes() / 4,
                                  .zero_bytes = s.zero_bytes(),
                                  .first_column = first_column,
                                  .columns = columns});
  }
  /// Codes, scales and zero points.
  std::vector<launch_binding> weights(const launch_builder& b) const {
    return {b.in(codes), b.in(scales), b.in(zero_mode() ? zeros : scales)};
  }
};

bool has_size(const gpu_call& call, size_t i, int64_t size) {
  return !call.has_input(i) || call.inputs[i].size() == size;
}

std::optional<nbits_call> parse_call(const gpu_call& call) {
  const nbits_shape s = parse_nbits(call.attrs);
  const operand& a = call.inputs.at(0);
  const auto variant = product_variant(a.type, call.gpu);
  if ((s.bits != 4 && s.bits != 8) || !variant || !call.gpu.int8 || a.dims.empty() || a.dims.back() != s.k ||
      call.has_input(4) || call.inputs.at(codes).type != dtype::uint8 || call.inputs.at(scales).type != a.type)
    return std::nullopt;
  const bool packed = call.has_input(zeros) && call.inputs[zeros].type == dtype::uint8;
  const bool types_fit = (!call.has_input(zeros) || packed || call.inputs[zeros].type == a.type) &&
                         (!call.has_input(offset) || call.inputs[offset].type == a.type);
  const bool sizes_fit =
      has_size(call, codes, s.n * s.blocks * s.block_bytes()) && has_size(call, scales, s.n * s.blocks) &&
      has_size(call, zeros, s.n * (packed ? s.zero_bytes() : s.blocks)) && has_size(call, offset, s.n);
  if (!types_fit || !sizes_fit)
    return std::nullopt;
  return nbits_call{call, s, *variant, a.size() / s.k};
}

launch_lists few_rows(const nbits_call& c) {
  const auto input = [&](size_t i) { return c.call.has_input(i) ? i : no_input; };
  return few_rows_launches(
      {.call = c.call,
       .name = "matmul_nbits",
       .rows = c.rows,
       .depth = c.s.k,
       .parts = {{.weights = codes, .scales = scales, .zeros = input(zeros), .bias = input(offset), .n = c.s.n}},
       .packed = c.s});
}

/// The launches that write the weights to `matrix`, as many as its bindings need.
void add_dequantize(launch_builder& b, const nbits_call& c, const launch_binding& matrix) {
  const int64_t column_bytes = bytes_of(c.call.inputs[0].type, c.s.k);
  const int64_t step = std::max<int64_t>(1, c.call.gpu.binding_alignment); // any multiple of it is aligned
  const int64_t most = std::max(step, c.call.gpu.max_binding_bytes / column_bytes / step * step);
  for (int64_t first = 0; first < c.s.n; first += most) {
    const int64_t columns = std::min(most, c.s.n - first);
    std::vector<launch_binding> bindings = c.weights(b);
    bindings.push_back(written(part_of(matrix, first * column_bytes, columns * column_bytes)));
    launch& l = b.add("nbits_dequantize." + c.variant,
                      flat_groups(columns * c.s.blocks * c.s.block_bytes() / 4, 256, c.call.gpu), std::move(bindings));
    l.constants = {word(c.s.bits), c.zero_mode()};
    l.params = c.parameters(first, columns);
  }
}

/// Appends the launches of a float product that reads `matrix` as its input 1 and the bias as its input 2.
launch_list after_dequantize(launch_list front, const launch_list& product, uint32_t matrix) {
  const auto scratch = static_cast<uint32_t>(front.scratch.size());
  for (launch l : product.launches) {
    ++l.step;
    for (launch_binding& binding : l.bindings)
      if (binding.from == launch_binding::source::scratch) {
        binding.index += scratch;
      } else if (binding.from == launch_binding::source::input && binding.index == 1) {
        binding.from = launch_binding::source::scratch;
        binding.index = matrix;
      } else if (binding.from == launch_binding::source::input && binding.index == 2) {
        binding.index = static_cast<uint32_t>(offset);
      }
    front.launches.push_back(std::move(l));
  }
  front.scratch.insert(front.scratch.end(), product.scratch.begin(), product.scratch.end());
  front.name += "+" + product.name;
  front.time = product.time;
  front.tile = product.tile;
  return front;
}

launch_lists many_rows(const nbits_call& c) {
  const operand& a = c.call.inputs[0];
  const operand matrix{.type = a.type, .dims = {c.s.n, c.s.k}};
  gpu_call floats{c.call.attrs, {a, matrix}, c.call.outputs, c.call.gpu, c.call.ways, c.call.tiles};
  float_product p{.m = c.rows, .n = c.s.n, .k = c.s.k, .a_line = c.s.k, .b_line = c.s.k};
  if (c.call.has_input(offset)) {
    floats.inputs.push_back(c.call.inputs[offset]);
    p.epilogue.bias = 2;
  }
  launch_builder b(c.call, "nbits_dequantize");
  const launch_binding scratch = b.scratch(matrix.bytes());
  add_dequantize(b, c, scratch);
  const auto front = b.finish();
  launch_lists lists;
  if (front)
    for (const launch_list& product : product_launches(floats, p))
      lists.push_back(after_dequantize(*front, product, scratch.index));
  return lists;
}

launch_lists matmul_nbits_launches(const gpu_call& call) {
  const auto c = parse_call(call);
  if (!c)
    return {};
  launch_lists lists = few_rows(*c);
  for (launch_list& list : many_rows(*c))
    lists.push_back(std::move(list));
  return lists;
}

} // namespace

extern constinit const launch_rows matmul_nbits_rules = {
    {"com.microsoft", "MatMulNBits", matmul_nbits_launches},
};

} // namespace troupe

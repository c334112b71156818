// com.microsoft MatMulNBits: Y = A · dequantised(B)ᵀ (+ bias), B of 2, 3, 4 or 8 bits with a scale for each block along
// K.
//
// B is uint8 [N, blocks, bytes a block], codes packed low bits first along K; blocks = ⌈K / block_size⌉. Scales are [N,
// blocks]. Zero points are packed like B, a row for each of N: [N, ⌈blocks · bits / 8⌉] uint8; or unpacked in A's type,
// [N, blocks]; absent, they are the middle of the range (8 or 128). With g_idx [K] element k has the scale and zero
// point of block g_idx[k]. The products are summed in float.
#include "ops/contrib/matmul_nbits.hpp"

#include "base/checked.hpp"
#include "base/parallel.hpp"
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/operand.hpp"
#include "ops/quantization.hpp"

namespace troupe {

nbits_shape parse_nbits(const attributes& attrs) {
  nbits_shape s{attrs.integer("K"), attrs.integer("N"), attrs.integer("bits", 4), attrs.integer("block_size"), 0};
  if (s.bits != 2 && s.bits != 3 && s.bits != 4 && s.bits != 8)
    fail(errc::unsupported, "weights of {} bits are not supported", s.bits);
  const bool power_of_two = s.block_size > 0 && (s.block_size & (s.block_size - 1)) == 0;
  if (s.k < 1 || s.n < 1 || s.block_size < 16 || s.block_size > 1 << 20 || !power_of_two)
    fail(errc::invalid_model, "K = {}, N = {}, block_size = {} are not the sizes of a product", s.k, s.n, s.block_size);
  s.blocks = checked_add(s.k, s.block_size - 1) / s.block_size;
  checked_mul(checked_mul(s.n, s.blocks), s.block_size);
  return s;
}

namespace {

void infer_nbits(infer_context& c) {
  const nbits_shape s = parse_nbits(c.attrs());
  symbolic_shape dims = c.dims(0);
  if (dims.empty() || (dims.back().is_constant() && !dims.back().is(s.k)))
    fail(errc::invalid_model, "the operand of shape {} does not end with K = {}", to_string(dims), s.k);
  dims.back() = s.n;
  c.set_output(0, c.type(0), std::move(dims));
}

void require_size(const kernel_context& c, size_t input, int64_t size) {
  if (c.has_input(input) && c.input(input).size() != size)
    fail(errc::invalid_input, "input {} has {} elements instead of {}", input, c.input(input).size(), size);
}

void check_operands(const kernel_context& c, const nbits_shape& s) {
  if (c.input(1).type != dtype::uint8)
    fail(errc::invalid_input, "the weights must be uint8");
  if (c.input(0).dims.empty() || c.input(0).dims.back() != s.k)
    fail(errc::invalid_input, "the operand of shape {} does not end with K = {}", to_string(c.input(0).dims), s.k);
  require_size(c, 1, s.n * s.blocks * s.block_bytes());
  require_size(c, 2, s.n * s.blocks);
  if (c.has_input(3))
    require_size(c, 3, s.n * (c.input(3).type == dtype::uint8 ? s.zero_bytes() : s.blocks));
  require_size(c, 5, s.n);
}

/// Codes of 3 bits may lie in two bytes.
int code(const uint8_t* packed, int64_t i, int64_t bits) {
  const int64_t at = i * bits, shift = at % 8;
  int value = packed[at / 8] >> shift;
  if (shift + bits > 8)
    value |= packed[at / 8 + 1] << (8 - shift);
  return value & ((1 << bits) - 1);
}

/// Returns the block from which each element of a column has its scale; empty if that is the block that it is in.
std::vector<int64_t> groups_of(const kernel_context& c, const nbits_shape& s) {
  if (!c.has_input(4))
    return {};
  // Either an index an element, or as many as the blocks have places.
  if (c.input(4).size() != s.blocks * s.block_size)
    require_size(c, 4, s.k);
  auto groups = to_int64(c.input(4));
  groups.resize(static_cast<size_t>(s.k));
  for (const int64_t g : groups)
    if (g < 0 || g >= s.blocks)
      fail(errc::invalid_input, "g_idx holds {}, but there are {} blocks", g, s.blocks);
  return groups;
}

/// Everything a column needs, in float.
struct nbits_operands {
  nbits_shape s;
  const uint8_t* weights;
  tensor scales;
  const uint8_t* packed_zeros; // null if absent or not packed
  tensor zeros;                // undefined if absent or packed
  std::vector<int64_t> groups; // of elements; empty if they are in order

  float zero(int64_t column, int64_t block) const {
    if (packed_zeros)
      return static_cast<float>(code(packed_zeros + column * s.zero_bytes(), block, s.bits));
    return zeros.defined() ? zeros.data<float>()[column * s.blocks + block] : static_cast<float>(1 << (s.bits - 1));
  }

  /// Writes column `column` of the dequantised weights: K values.
  void dequantize(int64_t column, float* to) const {
    const float* scale_row = scales.data<float>() + column * s.blocks;
    for (int64_t block = 0; block < s.blocks; ++block) {
      const int64_t first = block * s.block_size, last = std::min(first + s.block_size, s.k);
      const uint8_t* codes = weights + (column * s.blocks + block) * s.block_bytes();
      if (!groups.empty()) {
        for (int64_t i = first; i < last; ++i) {
          const int64_t group = groups[static_cast<size_t>(i)];
          to[i] = (static_cast<float>(code(codes, i - first, s.bits)) - zero(column, group)) * scale_row[group];
        }
        continue;
      }
      const float scale = scale_row[block], middle = zero(column, block);
      for (int64_t i = first; i < last; ++i)
        to[i] = (static_cast<float>(code(codes, i - first, s.bits)) - middle) * scale;
    }
  }
};

float dot(const float* a, const float* b, int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i)
    sum += a[i] * b[i];
  return sum;
}

void matmul_nbits(kernel_context& c) {
  const nbits_shape s = parse_nbits(c.attrs());
  check_operands(c, s);
  const bool packed = c.has_input(3) && c.input(3).type == dtype::uint8;
  const nbits_operands b{s,
                         c.input(1).as<uint8_t>(),
                         converted<float>(c.input(2)),
                         packed ? c.input(3).as<uint8_t>() : nullptr,
                         c.has_input(3) && !packed ? converted<float>(c.input(3)) : tensor{},
                         groups_of(c, s)};
  const tensor a = converted<float>(c.input(0)), bias = c.has_input(5) ? converted<float>(c.input(5)) : tensor{};
  const int64_t rows = a.size() / s.k;
  visit_float(c.output(0).type, [&]<class T>(type_tag<T>) {
    T* y = c.output(0).as<T>();
    parallel_for(s.n, std::max<int64_t>(1, 64 * 1024 / s.k), [&](int64_t begin, int64_t end) {
      std::vector<float> column(static_cast<size_t>(s.k));
      for (int64_t n = begin; n < end; ++n) {
        b.dequantize(n, column.data());
        const float offset = bias.defined() ? bias.data<float>()[n] : 0.f;
        for (int64_t row = 0; row < rows; ++row)
          y[row * s.n + n] = static_cast<T>(dot(a.data<float>() + row * s.k, column.data(), s.k) + offset);
      }
    });
  });
}

op_cost nbits_cost(const attributes& attrs, const call_shapes& call) {
  const auto k = static_cast<double>(attrs.integer("K"));
  return {2 * k * static_cast<double>(volume(call.outputs[0])), operand_bytes(call)};
}

constexpr auto matmul_nbits_rows = std::to_array<op_def>({
    op_row("MatMulNBits", 1, infer_nbits, matmul_nbits,
           {.domain = "com.microsoft",
            .inputs = {3, 6},
            .types = types::floats,
            .cost = nbits_cost,
            .axes = axes::before_last<1>,
            .mixes = "sums over"}),
});

} // namespace

extern constinit const op_table contrib_matmul_nbits_ops = matmul_nbits_rows;

} // namespace troupe

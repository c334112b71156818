// com.microsoft MatMulBnb4: Y = A · dequantised(B)ᵀ, B of 4-bit codes as bitsandbytes writes them; without transB A ·
// dequantised(B).
//
// B is [N, K], flattened; two codes share a byte, the first one in the high half. A code means a number in [−1, 1]
// (quant_type 0: a float of 4 bits, 1: a quantile of the normal distribution), which is multiplied by the absmax of its
// block of block_size neighbours.
#include "base/checked.hpp"
#include "ops/axes.hpp"
#include "ops/expansion.hpp"
#include "ops/operand.hpp"
#include "ops/quantization.hpp"

namespace troupe {
namespace {

using code_table = std::array<float, 16>;

constexpr code_table float4_codes{0.f, 0.0052083333f,  0.66666667f,  1.f,  0.33333333f,  0.5f,  0.16666667f,  0.25f,
                                  0.f, -0.0052083333f, -0.66666667f, -1.f, -0.33333333f, -0.5f, -0.16666667f, -0.25f};
constexpr code_table normal4_codes{-1.f,         -0.69619280f, -0.52507305f, -0.39491749f, -0.28444138f, -0.18477343f,
                                   -0.09105004f, 0.f,          0.07958030f,  0.16093020f,  0.24611230f,  0.33791524f,
                                   0.44070983f,  0.56261700f,  0.72295684f,  1.f};

struct bnb4_rule {
  int64_t k, n, block;
  const code_table* codes;
  bool transposed; // A ends with K

  int64_t operands() const { return transposed ? k : n; }
  int64_t results() const { return transposed ? n : k; }
  int64_t elements() const { return k * n; }
};

bnb4_rule parse_bnb4(const attributes& attrs) {
  const int64_t type = attrs.integer("quant_type");
  bnb4_rule r{attrs.integer("K"), attrs.integer("N"), attrs.integer("block_size"),
              type == 0 ? &float4_codes : &normal4_codes, attrs.integer("transB", 1) != 0};
  if (type != 0 && type != 1)
    fail(errc::invalid_model, "attribute 'quant_type' is {}, not 0 or 1", type);
  if (r.k < 1 || r.n < 1 || r.block < 1)
    fail(errc::invalid_model, "K = {}, N = {}, block_size = {} are not the sizes of a product", r.k, r.n, r.block);
  checked_add(checked_mul(r.k, r.n), r.block);
  return r;
}

void infer_bnb4(infer_context& c) {
  const bnb4_rule r = parse_bnb4(c.attrs());
  symbolic_shape dims = c.dims(0);
  if (dims.empty() || (dims.back().is_constant() && !dims.back().is(r.operands())))
    fail(errc::invalid_model, "the operand of shape {} does not end with {}", to_string(dims), r.operands());
  dims.back() = r.results();
  c.set_output(0, c.type(0), std::move(dims));
}

void matmul_bnb4(kernel_context& c) {
  const bnb4_rule r = parse_bnb4(c.attrs());
  const int64_t scales = r.elements() / r.block + (r.elements() % r.block != 0);
  if (c.input(1).type != dtype::uint8 || c.input(1).size() != (r.elements() + 1) / 2 || c.input(2).size() != scales ||
      c.input(0).dims.back() != r.operands())
    fail(errc::invalid_input, "operands of {}, {} and {} elements are not those of [{}, {}] in blocks of {}",
         c.input(0).size(), c.input(1).size(), c.input(2).size(), r.n, r.k, r.block);
  const read_as<float> a(c.input(0)), absmax(c.input(2));
  write_as<float> y(c.output(0));
  const auto* packed = c.input(1).as<uint8_t>();
  const auto weight = [&](int64_t i) {
    return (*r.codes)[packed[i / 2] >> (i % 2 ? 0 : 4) & 15] * absmax[i / r.block];
  };
  const int64_t inner = r.operands(), width = r.results(), rows = c.input(0).size() / inner;
  parallel_for(width, std::max<int64_t>(1, 64 * 1024 / inner), [&](int64_t begin, int64_t end) {
    std::vector<float> column(static_cast<size_t>(inner));
    for (int64_t j = begin; j < end; ++j) {
      for (int64_t i = 0; i < inner; ++i)
        column[static_cast<size_t>(i)] = weight(r.transposed ? j * r.k + i : i * r.k + j);
      for (int64_t row = 0; row < rows; ++row) {
        float sum = 0;
        for (int64_t i = 0; i < inner; ++i)
          sum += a[row * inner + i] * column[static_cast<size_t>(i)];
        y[row * width + j] = sum;
      }
    }
  });
  y.commit();
}

op_cost bnb4_cost(const attributes& attrs, const call_shapes& call) {
  const bnb4_rule r = parse_bnb4(attrs);
  return {2 * static_cast<double>(r.operands()) * static_cast<double>(volume(call.outputs[0])), operand_bytes(call)};
}

constexpr auto matmul_bnb4_rows = std::to_array<op_def>({
    op_row("MatMulBnb4", 1, infer_bnb4, matmul_bnb4,
           {.domain = microsoft,
            .inputs = {3, 3},
            .types = types::floats,
            .cost = bnb4_cost,
            .axes = axes::before_last<1>,
            .mixes = "sums over"}),
});

} // namespace

extern constinit const op_table contrib_matmul_bnb4_ops = matmul_bnb4_rows;

} // namespace troupe

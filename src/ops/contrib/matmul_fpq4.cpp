// com.microsoft MatMulFpQ4: Y = A · dequantised(B), B [K, N] of 4-bit codes as ONNX Runtime packs them, whose dims are
// input 2.
//
// B's columns lie one after the other in a vector of bytes, each in blocks of 32 rows. A block has its scale (a float),
// a byte that is its zero point (blk_quant_type 1; with 0 it is 8) and 16 bytes: byte i has rows i and i + 16 in its
// low and its high half. The last block of a column is whole.
#include "base/checked.hpp"
#include "ops/axes.hpp"
#include "ops/expansion.hpp"
#include "ops/operand.hpp"

#include <algorithm>
#include <cstring>

namespace troupe {
namespace {

constexpr size_t fpq4_bytes = 1, fpq4_dims = 2;
constexpr int64_t fpq4_block = 32;

/// Returns whether the blocks have a zero point.
bool has_zero_points(const attributes& attrs) {
  const int64_t type = attrs.integer("blk_quant_type", 1);
  if (type != 0 && type != 1)
    fail(errc::invalid_model, "attribute 'blk_quant_type' is {}, not 0 or 1", type);
  return type == 1;
}

int64_t block_bytes(bool zero_points) {
  return static_cast<int64_t>(sizeof(float)) + (zero_points ? 1 : 0) + fpq4_block / 2;
}

void infer_fpq4(infer_context& c) {
  const bool zero_points = has_zero_points(c.attrs());
  if (c.type(fpq4_bytes) != dtype::uint8 || c.rank(fpq4_bytes) != 1 || c.type(fpq4_dims) != dtype::int64)
    fail(errc::invalid_model, "B of {} and shape {}, its dims of {}; uint8, a vector and int64 are needed",
         to_string(c.type(fpq4_bytes)), to_string(c.dims(fpq4_bytes)), to_string(c.type(fpq4_dims)));
  const std::vector<int64_t> b = c.require_constants(fpq4_dims);
  if (b.size() != 2 || b[0] < 0 || b[1] < 0)
    fail(errc::invalid_model, "the dims of B are {}; two sizes are needed", to_string(b));
  const int64_t blocks = b[0] / fpq4_block + (b[0] % fpq4_block != 0);
  require_same(c.dims(fpq4_bytes)[0], checked_mul(checked_mul(blocks, b[1]), block_bytes(zero_points)),
               "the bytes of B and those of its dims");
  symbolic_shape y = c.dims(0);
  if (y.empty())
    fail(errc::invalid_model, "A has no dims");
  require_same(y.back(), b[0], "columns of A and rows of B");
  y.back() = b[1];
  c.set_output(0, c.type(0), std::move(y));
}

/// Writes the `k` elements of the column whose blocks begin at `from`.
void unpack_column(const uint8_t* from, bool zero_points, int64_t k, float* column) {
  for (int64_t first = 0; first < k; first += fpq4_block) {
    float scale = 0;
    std::memcpy(&scale, from, sizeof scale);
    const int zero = zero_points ? from[sizeof scale] : 8;
    const uint8_t* codes = from + sizeof scale + (zero_points ? 1 : 0);
    for (int64_t i = 0; i < std::min(fpq4_block, k - first); ++i) {
      const int code = codes[i % (fpq4_block / 2)] >> (i < fpq4_block / 2 ? 0 : 4) & 15;
      column[first + i] = static_cast<float>(code - zero) * scale;
    }
    from += block_bytes(zero_points);
  }
}

void matmul_fpq4(kernel_context& c) {
  const bool zero_points = has_zero_points(c.attrs());
  const std::vector<int64_t> b = to_int64(c.input(fpq4_dims));
  const int64_t k = b.at(0), n = b.at(1), stride = (k + fpq4_block - 1) / fpq4_block * block_bytes(zero_points);
  if (c.input(0).dims.back() != k || c.input(fpq4_bytes).size() != n * stride)
    fail(errc::invalid_input, "A of shape {} and {} bytes are not the operands of a product with [{}, {}]",
         to_string(c.input(0).dims), c.input(fpq4_bytes).size(), k, n);
  const int64_t rows = n == 0 ? 0 : c.output(0).size() / n;
  const auto* a = c.input(0).as<float>();
  const auto* bytes = c.input(fpq4_bytes).as<uint8_t>();
  auto* y = c.output(0).as<float>();
  parallel_for(n, std::max<int64_t>(1, 64 * 1024 / (k + 1)), [&](int64_t begin, int64_t end) {
    std::vector<float> column(static_cast<size_t>(k));
    for (int64_t j = begin; j < end; ++j) {
      unpack_column(bytes + j * stride, zero_points, k, column.data());
      for (int64_t row = 0; row < rows; ++row) {
        float sum = 0;
        for (int64_t i = 0; i < k; ++i)
          sum += a[row * k + i] * column[static_cast<size_t>(i)];
        y[row * n + j] = sum;
      }
    }
  });
}

op_cost fpq4_cost(const attributes&, const call_shapes& call) {
  const double k = call.inputs[0].empty() ? 1 : static_cast<double>(call.inputs[0].back());
  return {2 * k * static_cast<double>(volume(call.outputs[0])), operand_bytes(call)};
}

constexpr auto matmul_fpq4_rows = std::to_array<op_def>({
    op_row("MatMulFpQ4", 1, infer_fpq4, matmul_fpq4,
           {.domain = microsoft,
            .inputs = {3, 3},
            .types = set_of(dtype::float32),
            .host_inputs = 1U << fpq4_dims,
            .cost = fpq4_cost,
            .axes = axes::before_last<1>,
            .mixes = "sums over"}),
});

} // namespace

extern constinit const op_table contrib_matmul_fpq4_ops = matmul_fpq4_rows;

} // namespace troupe

// com.microsoft MatMulNBits of float32: weights stay packed.
//
// With few rows the product is bound by reading the packed bytes. Σ a (code − zero) · scale of a block is scale · (Σ a
// · code − zero · Σ a): codes are multiplied as they come, A having been sorted into elements of low and high halves of
// a byte before; sums of a block's A are made once. Zero points that are not given are the same for all codes, and are
// taken off each. With more rows, tiles of columns are dequantised into a core's cache and multiplied by oneDNN.
#include "ops/contrib/matmul_nbits.hpp"
#include "base/parallel.hpp"
#include "cpu/dnnl_call.hpp"
#include "cpu/kernels.hpp"
#include "cpu/packed_column.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace troupe {
namespace {

constexpr int64_t most_rows = 4, tile_columns = 32;
/// Bytes of codes below which one thread is faster than waking another.
constexpr int64_t single_thread_codes = 24 * 1024;

class matmul_nbits_kernel final : public kernel {
public:
  matmul_nbits_kernel(const kernel_request& r, const nbits_shape& s)
      : s_(s), scratch_(r.resources.scratch), rows_(r.inputs[0].size() / s.k), padded_(s.blocks * s.block_size),
        threads_(thread_count()), packed_zeros_(r.has_input(3) && r.inputs[3].type == dtype::uint8),
        real_zeros_(r.has_input(3) && !packed_zeros_), has_bias_(r.has_input(5)),
        multiply_(columns_function_for(s.bits, s.block_size)) {
    const int64_t floats = rows_ <= most_rows ? rows_ * (padded_ + s.blocks) : threads_ * tile_columns * s.k;
    scratch_.reserve(floats * int64_t{sizeof(float)});
  }

  void run(const kernel_run& r) override {
    if (rows_ > most_rows)
      return run_tiles(r);
    auto* sorted = static_cast<float*>(scratch_.data());
    sort_rows(r.input<float>(0), sorted, sorted + rows_ * padded_);
    const bool alone = s_.n * s_.blocks * s_.block_bytes() <= single_thread_codes;
    const int64_t grain = alone ? s_.n : (s_.n + thread_count() - 1) / thread_count();
    parallel_for(s_.n, grain, [&](int64_t begin, int64_t end) { multiply_columns(r, sorted, begin, end); });
  }

private:
  bool has_zeros() const { return real_zeros_ || packed_zeros_; }
  bool is_nibbles() const { return s_.bits == 4; }

  /// Writes A's rows with zeros beyond K; for nibbles the even elements of each block come first. Sums, for zero points
  /// that are given, are by row, then block.
  void sort_rows(const float* a, float* to, float* sums) const {
    for (int64_t row = 0; row < rows_; ++row, a += s_.k, to += padded_)
      for (int64_t block = 0; block < s_.blocks; ++block) {
        const int64_t first = block * s_.block_size, count = std::min(s_.block_size, s_.k - first);
        sort_block(a + first, count, to + first);
        if (has_zeros())
          sums[row * s_.blocks + block] = std::accumulate(a + first, a + first + count, 0.f);
      }
  }

  void sort_block(const float* a, int64_t count, float* to) const {
    if (count < s_.block_size)
      std::fill_n(to, s_.block_size, 0.f);
    if (!is_nibbles()) {
      std::copy_n(a, count, to);
      return;
    }
    const int64_t half = s_.block_size / 2;
    for (int64_t i = 0; i < count / 2; ++i) {
      to[i] = a[2 * i];
      to[half + i] = a[2 * i + 1];
    }
    if (count % 2 != 0)
      to[count / 2] = a[count - 1];
  }

  float zero(const kernel_run& r, int64_t column, int64_t block) const {
    if (real_zeros_)
      return r.input<float>(3)[column * s_.blocks + block];
    if (!packed_zeros_)
      return static_cast<float>(1 << (s_.bits - 1));
    const uint8_t* packed = r.input<uint8_t>(3) + column * s_.zero_bytes();
    return static_cast<float>(s_.bits == 8 ? packed[block] : packed[block / 2] >> (block % 2 ? 4 : 0) & 15);
  }

  void multiply_columns(const kernel_run& r, const float* sorted, int64_t begin, int64_t end) const {
    const float *sums = sorted + rows_ * padded_, middle = has_zeros() ? 0.f : zero(r, 0, 0);
    float* y = r.output<float>(0);
    multiply_({r.input<uint8_t>(1) + begin * s_.blocks * s_.block_bytes(), r.input<float>(2) + begin * s_.blocks,
               end - begin, s_.blocks, s_.block_size, middle},
              sorted, padded_, rows_, y + begin, s_.n);
    for (int64_t row = 0; row < rows_; ++row, y += s_.n) {
      for (int64_t n = begin; has_zeros() && n < end; ++n)
        y[n] -= shift(r, n, sums + row * s_.blocks);
      for (int64_t n = begin; has_bias_ && n < end; ++n)
        y[n] += r.input<float>(5)[n];
    }
  }

  /// Σ scale · zero · (Σ a of the block), for column `n`.
  float shift(const kernel_run& r, int64_t n, const float* sums) const {
    const float* scales = r.input<float>(2) + n * s_.blocks;
    float total = 0;
    for (int64_t block = 0; block < s_.blocks; ++block)
      total += scales[block] * zero(r, n, block) * sums[block];
    return total;
  }

  /// Writes column `n` of the dequantised weights: K values.
  void dequantize(const kernel_run& r, int64_t n, float* to) const {
    for (int64_t block = 0; block < s_.blocks; ++block) {
      const int64_t first = block * s_.block_size, count = std::min(s_.block_size, s_.k - first);
      const uint8_t* codes = r.input<uint8_t>(1) + (n * s_.blocks + block) * s_.block_bytes();
      const float scale = r.input<float>(2)[n * s_.blocks + block], middle = zero(r, n, block);
      if (is_nibbles())
        for (int64_t i = 0; i < count; ++i)
          to[first + i] = (static_cast<float>(codes[i / 2] >> (i % 2 * 4) & 15) - middle) * scale;
      else
        for (int64_t i = 0; i < count; ++i)
          to[first + i] = (static_cast<float>(codes[i]) - middle) * scale;
    }
  }

  void run_tiles(const kernel_run& r) const {
    auto* scratch = static_cast<float*>(scratch_.data());
    const int64_t tiles = (s_.n + tile_columns - 1) / tile_columns, threads = threads_;
    parallel_for(threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t thread = begin; thread < end; ++thread) {
        float* columns = scratch + thread * tile_columns * s_.k;
        for (int64_t tile = tiles * thread / threads; tile < tiles * (thread + 1) / threads; ++tile)
          multiply_tile(r, tile * tile_columns, columns);
      }
    });
  }

  void multiply_tile(const kernel_run& r, int64_t first, float* columns) const {
    const int64_t count = std::min(tile_columns, s_.n - first);
    for (int64_t i = 0; i < count; ++i)
      dequantize(r, first + i, columns + i * s_.k);
    float* y = r.output<float>(0) + first;
    dnn::multiply_transposed(rows_, count, s_.k, r.input<float>(0), columns, y, s_.n);
    if (has_bias_)
      for (int64_t row = 0; row < rows_; ++row)
        for (int64_t i = 0; i < count; ++i)
          y[row * s_.n + i] += r.input<float>(5)[first + i];
  }

  const nbits_shape s_;
  scratch_buffer& scratch_;
  int64_t rows_, padded_; // rows of A; K rounded up to whole blocks
  int64_t threads_;       // that have scratch: when the kernel was made there may have been fewer than at a run
  bool packed_zeros_, real_zeros_, has_bias_;
  columns_function multiply_;
};

} // namespace

kernel_ptr make_matmul_nbits(const kernel_request& r) {
  const nbits_shape s = parse_nbits(r.call.attrs);
  const auto holds = [&](size_t i, dtype type, int64_t size) {
    return !r.has_input(i) || (r.inputs[i].type == type && r.inputs[i].size() == size);
  };
  const bool zeros = holds(3, dtype::uint8, s.n * s.zero_bytes()) || holds(3, dtype::float32, s.n * s.blocks);
  if ((s.bits != 4 && s.bits != 8) || !r.all_plain() || r.inputs[0].type != dtype::float32 ||
      r.outputs[0].type != dtype::float32 || r.inputs[0].size() == 0 || r.inputs[0].dims.back() != s.k ||
      r.has_input(4) || !zeros || !holds(1, dtype::uint8, s.n * s.blocks * s.block_bytes()) ||
      !holds(2, dtype::float32, s.n * s.blocks) || !holds(5, dtype::float32, s.n))
    return nullptr;
  return std::make_unique<matmul_nbits_kernel>(r, s);
}

} // namespace troupe

// Blocked matrix product: columns in panels that a tile of rows × panel accumulates in registers. B is packed panel by
// panel so that the inner loop reads consecutive memory; few rows (a vector times a matrix) skip the packing.
#include "ops/gemm.hpp"

#include "base/parallel.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr int64_t panel = 32;        // columns of a tile
constexpr int64_t tile_rows = 4;     // rows of a tile
constexpr int64_t depth_block = 512; // a packed panel of floats is 64 KiB

/// acc[rows × panel] += A[rows × depth] · packed B[depth × panel], added to the first `width` columns of C.
template <class T, int64_t Rows>
void tile(int64_t depth, int64_t width, const T* a, int64_t lda, const T* packed, T* c, int64_t ldc) {
  T acc[Rows][panel] = {};
  for (int64_t p = 0; p < depth; ++p) {
    const T* b = packed + p * panel;
    for (int64_t i = 0; i < Rows; ++i) {
      const T factor = a[i * lda + p];
      for (int64_t j = 0; j < panel; ++j)
        acc[i][j] += factor * b[j];
    }
  }
  for (int64_t i = 0; i < Rows; ++i)
    for (int64_t j = 0; j < width; ++j)
      c[i * ldc + j] += acc[i][j];
}

template <class T>
void packed_gemm(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc) {
  std::vector<T> packed(static_cast<size_t>(std::min(k, depth_block) * panel));
  for (int64_t j = 0; j < n; j += panel) {
    const int64_t width = std::min(panel, n - j);
    for (int64_t p = 0; p < k; p += depth_block) {
      const int64_t depth = std::min(depth_block, k - p);
      for (int64_t q = 0; q < depth; ++q) {
        const T* row = b + (p + q) * ldb + j;
        std::fill(std::copy(row, row + width, packed.data() + q * panel), packed.data() + (q + 1) * panel, T(0));
      }
      int64_t i = 0;
      for (; i + tile_rows <= m; i += tile_rows)
        tile<T, tile_rows>(depth, width, a + i * lda + p, lda, packed.data(), c + i * ldc + j, ldc);
      for (; i < m; ++i)
        tile<T, 1>(depth, width, a + i * lda + p, lda, packed.data(), c + i * ldc + j, ldc);
    }
  }
}

/// For few rows: every row of B is read once, in order.
template <class T>
void row_gemm(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc) {
  for (int64_t p = 0; p < k; ++p)
    for (int64_t i = 0; i < m; ++i) {
      const T factor = a[i * lda + p];
      const T* row = b + p * ldb;
      T* out = c + i * ldc;
      for (int64_t j = 0; j < n; ++j)
        out[j] += factor * row[j];
    }
}

template <class T>
void serial_gemm(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc) {
  if (m < tile_rows || k == 0)
    row_gemm(m, n, k, a, lda, b, ldb, c, ldc);
  else
    packed_gemm(m, n, k, a, lda, b, ldb, c, ldc);
}

} // namespace

template <class T>
void gemm(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc) {
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  if (work < 64 * 1024) {
    serial_gemm(m, n, k, a, lda, b, ldb, c, ldc);
    return;
  }
  if (m >= 4 * tile_rows * thread_count()) {
    const int64_t blocks = (m + tile_rows - 1) / tile_rows;
    parallel_for(blocks, 1, [&](int64_t begin, int64_t end) {
      const int64_t first = begin * tile_rows, last = std::min(m, end * tile_rows);
      serial_gemm(last - first, n, k, a + first * lda, lda, b, ldb, c + first * ldc, ldc);
    });
    return;
  }
  parallel_for((n + panel - 1) / panel, 1, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * panel, last = std::min(n, end * panel);
    serial_gemm(m, last - first, k, a, lda, b + first, ldb, c + first, ldc);
  });
}

template <class T>
std::vector<T> transposed(const T* matrix, int64_t rows, int64_t columns) {
  std::vector<T> result(static_cast<size_t>(rows * columns));
  constexpr int64_t block = 16;
  parallel_for((rows + block - 1) / block, 16, [&](int64_t begin, int64_t end) {
    for (int64_t r0 = begin * block; r0 < std::min(rows, end * block); r0 += block)
      for (int64_t c = 0; c < columns; ++c)
        for (int64_t r = r0; r < std::min(rows, r0 + block); ++r)
          result[static_cast<size_t>(c * rows + r)] = matrix[r * columns + c];
  });
  return result;
}

template void gemm(int64_t, int64_t, int64_t, const float*, int64_t, const float*, int64_t, float*, int64_t);
template void gemm(int64_t, int64_t, int64_t, const double*, int64_t, const double*, int64_t, double*, int64_t);
template void gemm(int64_t, int64_t, int64_t, const uint32_t*, int64_t, const uint32_t*, int64_t, uint32_t*, int64_t);
template void gemm(int64_t, int64_t, int64_t, const uint64_t*, int64_t, const uint64_t*, int64_t, uint64_t*, int64_t);
template std::vector<float> transposed(const float*, int64_t, int64_t);
template std::vector<double> transposed(const double*, int64_t, int64_t);
template std::vector<uint32_t> transposed(const uint32_t*, int64_t, int64_t);
template std::vector<uint64_t> transposed(const uint64_t*, int64_t, int64_t);

} // namespace troupe

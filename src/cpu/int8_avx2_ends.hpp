// What kernels of bytes with AVX2, and with VNNI of 256 bits, share: how sums end as bytes.
#pragma once

#include "cpu/int8_product.hpp"

#include <algorithm>
#include <immintrin.h>

namespace troupe::int8::avx2_ends {

[[gnu::target("avx2"), gnu::always_inline]] inline __m256i load(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}

[[gnu::target("avx2"), gnu::always_inline]] inline void store(void* to, __m256i x) {
  _mm256_storeu_si256(static_cast<__m256i*>(to), x);
}

/// Ends the sums of `rows` rows of a block, [rows][16], the first of which is column `first` of `e`: `count` columns of
/// each row, at `y`; its rows are `y_step` bytes apart. An odd row's neighbour may be any, but can be read.
void rows_to_bytes(const int32_t* sums, int64_t rows, const byte_end& e, int64_t first, int64_t count, uint8_t* y,
                   int64_t y_step);

/// Ends a product by `b` as `product_to_bytes_function` says; `multiply(row, count, block, sums)` computes the sums of
/// some rows and a block, [count][16].
template <class Multiply>
void product_to_bytes(int64_t rows, const panel& b, const byte_end& end, int64_t columns, uint8_t* y, int64_t y_step,
                      const Multiply& multiply) {
  constexpr int64_t most_rows = 96; // whose sums stay in the first-level cache
  alignas(32) int32_t sums[most_rows * block_columns];
  for (int64_t row = 0; row < rows; row += most_rows)
    for (int64_t block = 0; block < b.blocks; ++block) {
      const int64_t first = block * block_columns, count = std::min(most_rows, rows - row);
      multiply(row, count, block, sums);
      rows_to_bytes(sums, count, end, first, std::min(block_columns, columns - first), y + row * y_step + first,
                    y_step);
    }
}

/// Ends the sums of 64 packed channels of each pixel: `channels` of them, in order, at `y`; pixels are `y_step` bytes
/// apart. `e` is for packed order.
void pixels_to_bytes(const int32_t* sums, int64_t pixels, const byte_end& e, int64_t channels, uint8_t* y,
                     int64_t y_step);

} // namespace troupe::int8::avx2_ends

#include "cpu/int8_avx2_vnni.hpp"

#include "cpu/int8_avx2_ends.hpp"

#include <algorithm>
#include <cstring>
#include <immintrin.h>

namespace troupe::int8::avx2_vnni {
namespace {

#define TROUPE_AVX2_VNNI [[gnu::target("avx2,avxvnni")]]
#define TROUPE_AVX2_VNNI_INLINE [[gnu::target("avx2,avxvnni"), gnu::always_inline]] inline

/// Rows, or pixels, whose sums stay in registers, and channels of a register.
constexpr int64_t tile_rows = 6, tile_pixels = 4, lanes = 8;
constexpr int64_t block_bytes = block_columns * quad;

TROUPE_AVX2_VNNI_INLINE __m256i load(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}

TROUPE_AVX2_VNNI_INLINE void store(void* to, __m256i x) {
  _mm256_storeu_si256(static_cast<__m256i*>(to), x);
}

// -- products

/// The sums of `Rows` rows and a block, which is at `w`.
template <int64_t Rows>
TROUPE_AVX2_VNNI void multiply_tile(const uint8_t* a, int64_t lda, const int8_t* w, int64_t quads, int32_t* c,
                                    int64_t ldc) {
  __m256i sums[Rows][2];
#pragma GCC unroll 6
  for (int64_t row = 0; row < Rows; ++row)
    sums[row][0] = sums[row][1] = _mm256_setzero_si256();
  for (int64_t q = 0; q < quads; ++q, w += block_bytes) {
    const __m256i of_quad[2] = {load(w), load(w + 32)};
#pragma GCC unroll 6
    for (int64_t row = 0; row < Rows; ++row) {
      int32_t bytes;
      std::memcpy(&bytes, a + row * lda + q * quad, sizeof bytes);
      const __m256i x = _mm256_set1_epi32(bytes);
#pragma GCC unroll 2
      for (int64_t i = 0; i < 2; ++i)
        sums[row][i] = _mm256_dpbusd_avx_epi32(sums[row][i], x, of_quad[i]);
    }
  }
#pragma GCC unroll 6
  for (int64_t row = 0; row < Rows; ++row) {
    store(c + row * ldc, sums[row][0]);
    store(c + row * ldc + lanes, sums[row][1]);
  }
}

void multiply_block(const uint8_t* a, int64_t lda, int64_t rows, const int8_t* w, int64_t quads, int32_t* c,
                    int64_t ldc) {
  for (; rows >= tile_rows; rows -= tile_rows, a += tile_rows * lda, c += tile_rows * ldc)
    multiply_tile<tile_rows>(a, lda, w, quads, c, ldc);
  switch (rows) {
    case 5: return multiply_tile<5>(a, lda, w, quads, c, ldc);
    case 4: return multiply_tile<4>(a, lda, w, quads, c, ldc);
    case 3: return multiply_tile<3>(a, lda, w, quads, c, ldc);
    case 2: return multiply_tile<2>(a, lda, w, quads, c, ldc);
    case 1: return multiply_tile<1>(a, lda, w, quads, c, ldc);
    default: return;
  }
}

// -- depthwise convolutions

/// Sums over all taps of `Pixels` pixels.
template <int64_t Pixels>
TROUPE_AVX2_VNNI void multiply_pixels(const uint8_t* columns, const line_taps& t, const int8_t* w, int32_t* to) {
  const int64_t step = t.place(1, 0, 0);
  for (int64_t first = 0; first < group_channels; first += lanes) {
    __m256i sums[Pixels];
#pragma GCC unroll 4
    for (__m256i& sum : sums)
      sum = _mm256_setzero_si256();
    const int8_t* tap = w + first * quad;
    for (int64_t k = 0; k < t.kernel; ++k)
      for (int64_t q = 0; q < t.quads; ++q, tap += column_bytes) {
        const uint8_t* x = columns + t.place(0, k, q) + first * quad;
        const __m256i weights = load(tap);
#pragma GCC unroll 4
        for (int64_t p = 0; p < Pixels; ++p)
          sums[p] = _mm256_dpbusd_avx_epi32(sums[p], load(x + p * step), weights);
      }
#pragma GCC unroll 4
    for (int64_t p = 0; p < Pixels; ++p)
      store(to + p * group_channels + first, sums[p]);
  }
}

} // namespace

void multiply(const uint8_t* a, int64_t lda, int64_t rows, const panel& b, int32_t* c, int64_t ldc) {
  for (int64_t block = 0; block < b.blocks; ++block)
    multiply_block(a, lda, rows, b.data + block * b.quads * block_bytes, b.quads, c + block * block_columns, ldc);
}

void multiply_to_bytes(const uint8_t* a, int64_t lda, int64_t rows, const panel& b, const byte_end& end,
                       int64_t columns, uint8_t* y, int64_t y_step) {
  constexpr int64_t most_rows = 96; // whose sums stay in the first-level cache
  alignas(32) int32_t sums[most_rows * block_columns];
  for (int64_t row = 0; row < rows; row += most_rows)
    for (int64_t block = 0; block < b.blocks; ++block) {
      const int64_t first = block * block_columns, count = std::min(most_rows, rows - row);
      multiply_block(a + row * lda, lda, count, b.data + block * b.quads * block_bytes, b.quads, sums, block_columns);
      avx2_ends::rows_to_bytes(sums, count, end, first, std::min(block_columns, columns - first),
                               y + row * y_step + first, y_step);
    }
}

void multiply_channels(const uint8_t* columns, const line_taps& t, int64_t pixels, const int8_t* w, int32_t* sums) {
  for (int64_t p = 0; p < pixels; ++p)
    multiply_pixels<1>(columns + t.place(p, 0, 0), t, w, sums + p * group_channels);
}

void multiply_channels_to_bytes(const uint8_t* columns, const line_taps& t, int64_t pixels, const int8_t* w,
                                const byte_end& end, int64_t channels, uint8_t* y, int64_t y_step) {
  alignas(32) int32_t sums[tile_pixels * group_channels];
  for (int64_t p = 0; p < pixels;) {
    const int64_t count = pixels - p >= tile_pixels ? tile_pixels : 1;
    const uint8_t* x = columns + t.place(p, 0, 0);
    count == tile_pixels ? multiply_pixels<tile_pixels>(x, t, w, sums) : multiply_pixels<1>(x, t, w, sums);
    for (int64_t i = 0; i < count; ++i, ++p)
      avx2_ends::pixel_to_bytes(sums + i * group_channels, end, channels, y + p * y_step);
  }
}

} // namespace troupe::int8::avx2_vnni

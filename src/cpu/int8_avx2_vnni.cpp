#include "cpu/int8_avx2_vnni.hpp"

#include "cpu/int8_avx2_ends.hpp"
#include "cpu/int8_row_tiles.hpp"

#include <cstring>
#include <immintrin.h>

namespace troupe::int8::avx2_vnni {
namespace {

#define TROUPE_AVX2_VNNI [[gnu::target("avx2,avxvnni")]]

/// Rows, or pixels, whose sums stay in registers, and channels of a register.
constexpr int64_t tile_rows = 6, tile_pixels = 4, lanes = 8;
constexpr int64_t block_bytes = block_columns * quad;

using avx2_ends::load, avx2_ends::store;

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

void multiply_block(const uint8_t* a, int64_t lda, int64_t rows, const panel& b, int64_t block, int32_t* c,
                    int64_t ldc) {
  const int8_t* w = b.data + block * b.quads * block_bytes;
  for_row_tiles<tile_rows>(rows, [&]<int64_t Rows>(int64_t row) {
    multiply_tile<Rows>(a + row * lda, lda, w, b.quads, c + row * ldc, ldc);
  });
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
    multiply_block(a, lda, rows, b, block, c + block * block_columns, ldc);
}

void multiply_to_bytes(const uint8_t* a, int64_t lda, int64_t rows, const panel& b, const byte_end& end,
                       int64_t columns, uint8_t* y, int64_t y_step) {
  avx2_ends::product_to_bytes(rows, b, end, columns, y, y_step,
                              [&](int64_t row, int64_t count, int64_t block, int32_t* sums) {
                                multiply_block(a + row * lda, lda, count, b, block, sums, block_columns);
                              });
}

void multiply_channels(const uint8_t* columns, const line_taps& t, int64_t pixels, const int8_t* w, int32_t* sums) {
  for (int64_t p = 0; p < pixels; ++p)
    multiply_pixels<1>(columns + t.place(p, 0, 0), t, w, sums + p * group_channels);
}

void multiply_channels_to_bytes(const uint8_t* columns, const line_taps& t, int64_t pixels, const int8_t* w,
                                const byte_end& end, int64_t channels, uint8_t* y, int64_t y_step) {
  for_row_tiles<tile_pixels>(pixels, [&]<int64_t Pixels>(int64_t p) {
    alignas(32) int32_t sums[Pixels * group_channels];
    multiply_pixels<Pixels>(columns + t.place(p, 0, 0), t, w, sums);
    avx2_ends::pixels_to_bytes(sums, Pixels, end, channels, y + p * y_step, y_step);
  });
}

} // namespace troupe::int8::avx2_vnni

#include "cpu/int8_avx2.hpp"

#include "cpu/int8_avx2_ends.hpp"
#include "cpu/int8_row_tiles.hpp"

#include <algorithm>
#include <cstring>
#include <immintrin.h>
#include <vector>

namespace troupe::int8::avx2 {
namespace {

#define TROUPE_AVX2 [[gnu::target("avx2,fma")]]
#define TROUPE_AVX2_INLINE [[gnu::target("avx2,fma"), gnu::always_inline]] inline

using avx2_ends::load, avx2_ends::store;

// Four bytes of a 32-bit integer become two pairs of 16 bits: its even bytes and its odd ones. Products of a pair are
// added within its 32 bits, so columns and channels stay where they are.

TROUPE_AVX2_INLINE __m256i even_unsigned(__m256i x) {
  return _mm256_and_si256(x, _mm256_set1_epi16(0xff));
}

TROUPE_AVX2_INLINE __m256i odd_unsigned(__m256i x) {
  return _mm256_srli_epi16(x, 8);
}

TROUPE_AVX2_INLINE __m256i even_signed(__m256i w) {
  return _mm256_srai_epi16(_mm256_slli_epi16(w, 8), 8);
}

TROUPE_AVX2_INLINE __m256i odd_signed(__m256i w) {
  return _mm256_srai_epi16(w, 8);
}

TROUPE_AVX2_INLINE __m256i sum_of_products(__m256i sum, __m256i x, __m256i w) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(x, w));
}

// -- products

/// Rows whose sums stay in registers, and quads of the depth that are widened at a time: those of a block stay in the
/// first-level cache.
constexpr int64_t tile_rows = 6, depth_quads = 128;
constexpr int64_t block_bytes = block_columns * quad;

/// Widens `quads` quads of a block: first their even rows, [quads][16 columns][2], then their odd ones.
TROUPE_AVX2 void widen_block(const int8_t* w, int64_t quads, int16_t* to) {
  int16_t* const odd = to + quads * 32;
  for (int64_t i = 0; i < quads * 2; ++i) {
    const __m256i bytes = load(w + i * 32);
    store(to + i * 16, even_signed(bytes));
    store(odd + i * 16, odd_signed(bytes));
  }
}

/// Widens `quads` quads of a row: first their even bytes, then their odd ones.
TROUPE_AVX2 void widen_quads(const uint8_t* a, int64_t quads, int16_t* to) {
  int16_t* const odd = to + quads * 2;
  int64_t q = 0;
  for (; q + 8 <= quads; q += 8) {
    const __m256i bytes = load(a + q * quad);
    store(to + q * 2, even_unsigned(bytes));
    store(odd + q * 2, odd_unsigned(bytes));
  }
  for (; q < quads; ++q)
    for (int64_t i = 0; i < 2; ++i) {
      to[q * 2 + i] = a[q * quad + i * 2];
      odd[q * 2 + i] = a[q * quad + i * 2 + 1];
    }
}

/// Adds, or sets, the sums of `Rows` rows and a block over `pairs` pairs of a depth.
template <int64_t Rows>
TROUPE_AVX2 void add_tile(const int16_t* a, int64_t lda, const int16_t* w, int64_t pairs, bool adds, int32_t* c,
                          int64_t ldc) {
  __m256i sums[Rows][2];
#pragma GCC unroll 6
  for (int64_t row = 0; row < Rows; ++row)
#pragma GCC unroll 2
    for (int64_t i = 0; i < 2; ++i)
      sums[row][i] = adds ? load(c + row * ldc + i * 8) : _mm256_setzero_si256();
  for (int64_t p = 0; p < pairs; ++p, w += 32) {
    const __m256i of_pair[2] = {load(w), load(w + 16)};
#pragma GCC unroll 6
    for (int64_t row = 0; row < Rows; ++row) {
      int32_t both;
      std::memcpy(&both, a + row * lda + p * 2, sizeof both);
      const __m256i x = _mm256_set1_epi32(both);
#pragma GCC unroll 2
      for (int64_t i = 0; i < 2; ++i)
        sums[row][i] = _mm256_add_epi32(sums[row][i], _mm256_madd_epi16(x, of_pair[i]));
    }
  }
#pragma GCC unroll 6
  for (int64_t row = 0; row < Rows; ++row)
#pragma GCC unroll 2
    for (int64_t i = 0; i < 2; ++i)
      store(c + row * ldc + i * 8, sums[row][i]);
}

/// One row, for which widening the weights apart would cost more than the products.
TROUPE_AVX2 void multiply_row(const uint8_t* a, const panel& b, int32_t* c) {
  const int8_t* w = b.data;
  for (int64_t block = 0; block < b.blocks; ++block, c += block_columns) {
    __m256i sums[2] = {};
    for (int64_t q = 0; q < b.quads; ++q, w += block_bytes) {
      int32_t bytes;
      std::memcpy(&bytes, a + q * quad, sizeof bytes);
      const __m256i x = _mm256_set1_epi32(bytes), even = even_unsigned(x), odd = odd_unsigned(x);
#pragma GCC unroll 2
      for (int64_t i = 0; i < 2; ++i) {
        const __m256i weights = load(w + i * 32);
        sums[i] = sum_of_products(sums[i], even, even_signed(weights));
        sums[i] = sum_of_products(sums[i], odd, odd_signed(weights));
      }
    }
    store(c, sums[0]);
    store(c + 8, sums[1]);
  }
}

/// Rows of A, widened chunk by chunk of `depth_quads` quads.
class wide_rows {
public:
  wide_rows(const uint8_t* a, int64_t lda, int64_t rows, int64_t quads) : depth_(quads * quad) {
    thread_local std::vector<int16_t> room;
    room.resize(std::max(room.size(), static_cast<size_t>(rows * depth_)));
    data_ = room.data();
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t q = 0; q < quads; q += depth_quads)
        widen_quads(a + row * lda + q * quad, std::min(depth_quads, quads - q), room.data() + row * depth_ + q * quad);
  }

  /// Computes the sums of `rows` rows, from `row` on, and block `block`.
  void multiply(int64_t row, int64_t rows, const panel& b, int64_t block, int32_t* c, int64_t ldc) const {
    alignas(32) int16_t weights[depth_quads * block_bytes];
    for (int64_t q = 0; q < b.quads; q += depth_quads) {
      const int64_t quads = std::min(depth_quads, b.quads - q);
      widen_block(b.data + (block * b.quads + q) * block_bytes, quads, weights);
      const int16_t* a = data_ + row * depth_ + q * quad;
      for_row_tiles<tile_rows>(rows, [&]<int64_t Rows>(int64_t first) {
        add_tile<Rows>(a + first * depth_, depth_, weights, quads * 2, q > 0, c + first * ldc, ldc);
      });
    }
  }

private:
  int64_t depth_;
  const int16_t* data_;
};

// -- depthwise convolutions

/// Pixels whose sums stay in registers, and channels of a register.
constexpr int64_t tile_pixels = 4, lanes = 8;

/// Sums over all taps of `Pixels` pixels.
template <int64_t Pixels>
TROUPE_AVX2 void multiply_pixels(const uint8_t* columns, const line_taps& t, const int8_t* w, int32_t* to) {
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
        const __m256i weights = load(tap), even = even_signed(weights), odd = odd_signed(weights);
#pragma GCC unroll 4
        for (int64_t p = 0; p < Pixels; ++p) {
          const __m256i bytes = load(x + p * step);
          sums[p] = sum_of_products(sums[p], even_unsigned(bytes), even);
          sums[p] = sum_of_products(sums[p], odd_unsigned(bytes), odd);
        }
      }
#pragma GCC unroll 4
    for (int64_t p = 0; p < Pixels; ++p)
      store(to + p * group_channels + first, sums[p]);
  }
}

/// The same for the usual kernel, 3 columns of up to 4 lines: neighbours share columns in registers.
template <int64_t Stride>
TROUPE_AVX2 void four_pixels_of_three(const uint8_t* columns, const int8_t* w, int32_t* to) {
  constexpr int64_t count = (tile_pixels - 1) * Stride + 3;
  for (int64_t first = 0; first < group_channels; first += lanes) {
    __m256i even[3], odd[3], sums[tile_pixels] = {};
#pragma GCC unroll 3
    for (int64_t k = 0; k < 3; ++k) {
      const __m256i weights = load(w + k * column_bytes + first * quad);
      even[k] = even_signed(weights);
      odd[k] = odd_signed(weights);
    }
#pragma GCC unroll 9
    for (int64_t column = 0; column < count; ++column) {
      const __m256i bytes = load(columns + column * column_bytes + first * quad);
      const __m256i even_bytes = even_unsigned(bytes), odd_bytes = odd_unsigned(bytes);
#pragma GCC unroll 4
      for (int64_t p = 0; p < tile_pixels; ++p)
        if (const int64_t k = column - p * Stride; k >= 0 && k < 3) {
          sums[p] = sum_of_products(sums[p], even_bytes, even[k]);
          sums[p] = sum_of_products(sums[p], odd_bytes, odd[k]);
        }
    }
#pragma GCC unroll 4
    for (int64_t p = 0; p < tile_pixels; ++p)
      store(to + p * group_channels + first, sums[p]);
  }
}

void multiply_four(const uint8_t* columns, const line_taps& t, const int8_t* w, int32_t* to) {
  const bool of_three = t.kernel == 3 && t.quads == 1 && t.dilation == 1;
  if (of_three && t.stride == 1)
    return four_pixels_of_three<1>(columns, w, to);
  if (of_three && t.stride == 2)
    return four_pixels_of_three<2>(columns, w, to);
  multiply_pixels<tile_pixels>(columns, t, w, to);
}

/// Interleaves one lane's 16 channels of four lines.
TROUPE_AVX2_INLINE void interleave_lane(const __m128i (&x)[quad], uint8_t* to) {
  const __m128i low01 = _mm_unpacklo_epi8(x[0], x[1]), low23 = _mm_unpacklo_epi8(x[2], x[3]);
  const __m128i high01 = _mm_unpackhi_epi8(x[0], x[1]), high23 = _mm_unpackhi_epi8(x[2], x[3]);
  const __m128i y[quad] = {_mm_unpacklo_epi16(low01, low23), _mm_unpackhi_epi16(low01, low23),
                           _mm_unpacklo_epi16(high01, high23), _mm_unpackhi_epi16(high01, high23)};
#pragma GCC unroll 4
  for (int64_t i = 0; i < quad; ++i)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i * 64), y[i]);
}

/// Reads `count` bytes of a line, at most 16; the others are 0.
TROUPE_AVX2_INLINE __m128i load_bytes(const uint8_t* from, int64_t count) {
  if (count == 16)
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  alignas(16) uint8_t bytes[16] = {};
  std::memcpy(bytes, from, static_cast<size_t>(count));
  return _mm_load_si128(reinterpret_cast<const __m128i*>(bytes));
}

} // namespace

void multiply(const uint8_t* a, int64_t lda, int64_t rows, const panel& b, int32_t* c, int64_t ldc) {
  if (rows == 1)
    return multiply_row(a, b, c);
  const wide_rows wide(a, lda, rows, b.quads);
  for (int64_t block = 0; block < b.blocks; ++block)
    wide.multiply(0, rows, b, block, c + block * block_columns, ldc);
}

void multiply_to_bytes(const uint8_t* a, int64_t lda, int64_t rows, const panel& b, const byte_end& end,
                       int64_t columns, uint8_t* y, int64_t y_step) {
  const wide_rows wide(a, lda, rows, b.quads);
  avx2_ends::product_to_bytes(rows, b, end, columns, y, y_step,
                              [&](int64_t row, int64_t count, int64_t block, int32_t* sums) {
                                wide.multiply(row, count, b, block, sums, block_columns);
                              });
}

TROUPE_AVX2 void interleave(const line_bytes& x, int64_t count, int64_t channels, uint8_t flip, uint8_t* columns) {
  const __m128i flips = _mm_set1_epi8(static_cast<char>(flip));
  for (int64_t column = 0; column < count; ++column)
    for (int64_t q = 0; q < x.quads; ++q, columns += column_bytes)
      for (int64_t first = 0; first < channels; first += 16) {
        const int64_t there = std::min<int64_t>(16, channels - first);
        __m128i rows[quad];
#pragma GCC unroll 4
        for (int64_t i = 0; i < quad; ++i)
          rows[i] = _mm_xor_si128(load_bytes(x.lines[q * quad + i] + column * x.step + first, there), flips);
        interleave_lane(rows, columns + first);
      }
}

void multiply_channels(const uint8_t* columns, const line_taps& t, int64_t pixels, const int8_t* w, int32_t* sums) {
  for (int64_t p = 0; p < pixels; ++p)
    multiply_pixels<1>(columns + t.place(p, 0, 0), t, w, sums + p * group_channels);
}

void multiply_channels_to_bytes(const uint8_t* columns, const line_taps& t, int64_t pixels, const int8_t* w,
                                const byte_end& end, int64_t channels, uint8_t* y, int64_t y_step) {
  for_row_tiles<tile_pixels>(pixels, [&]<int64_t Pixels>(int64_t p) {
    alignas(32) int32_t sums[Pixels * group_channels];
    const uint8_t* x = columns + t.place(p, 0, 0);
    if constexpr (Pixels == tile_pixels)
      multiply_four(x, t, w, sums);
    else
      multiply_pixels<Pixels>(x, t, w, sums);
    avx2_ends::pixels_to_bytes(sums, Pixels, end, channels, y + p * y_step, y_step);
  });
}

} // namespace troupe::int8::avx2

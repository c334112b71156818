#include "cpu/int8_avx2_ends.hpp"

#include "cpu/int8_round.hpp"

#include <cstring>

namespace troupe::int8::avx2_ends {
namespace {

#define TROUPE_AVX2 [[gnu::target("avx2,fma")]]
#define TROUPE_AVX2_INLINE [[gnu::target("avx2,fma"), gnu::always_inline]] inline

/// What turns real results into bytes. All are taken as signed; the highest bit of unsigned ones is flipped last.
struct byte_limits {
  __m256i zero, least, most, flip;
};

TROUPE_AVX2_INLINE byte_limits limits_of(const byte_end& e) {
  const int32_t move = e.is_signed ? 0 : -128;
  return {_mm256_set1_epi16(static_cast<int16_t>(e.end.zero + move)),
          _mm256_set1_epi8(static_cast<char>(e.end.least + move)),
          _mm256_set1_epi8(static_cast<char>(e.end.most + move)), _mm256_set1_epi8(static_cast<char>(move))};
}

/// What 8 columns share.
struct column_end {
  __m256i correction;
  __m256 scale, offset;
  quantised_end end;
};

TROUPE_AVX2_INLINE column_end columns_of(const byte_end& e, int64_t first) {
  return {load(e.correction + first), _mm256_loadu_ps(e.scale + first), _mm256_loadu_ps(e.offset + first), e.end};
}

/// Returns a product that is rounded before it is added to anything.
TROUPE_AVX2_INLINE __m256 apart(__m256 product) {
  asm("" : "+x"(product));
  return product;
}

/// Returns ⌊((sum + correction) · scale + offset) / end.scale⌉, halves to even.
TROUPE_AVX2_INLINE __m256i rounded(__m256i sum, const column_end& e) {
  const __m256 whole = _mm256_cvtepi32_ps(_mm256_add_epi32(sum, e.correction));
  const __m256 real = _mm256_add_ps(apart(_mm256_mul_ps(whole, e.scale)), e.offset);
  return avx2_rounded_quotient(real, e.end);
}

/// Packs four registers of integers within 16-byte lanes: 4 of each register's in each lane. Packing and the addition
/// saturate.
TROUPE_AVX2_INLINE __m256i bytes_of(const byte_limits& l, __m256i a, __m256i b, __m256i c, __m256i d) {
  const __m256i low = _mm256_adds_epi16(_mm256_packs_epi32(a, b), l.zero),
                high = _mm256_adds_epi16(_mm256_packs_epi32(c, d), l.zero);
  return _mm256_xor_si256(_mm256_min_epi8(_mm256_max_epi8(_mm256_packs_epi16(low, high), l.least), l.most), l.flip);
}

/// Packing works within lanes, as the interleaving did: so channels are in order again.
TROUPE_AVX2 void pixel_to_bytes(const int32_t* sums, const byte_end& e, int64_t channels, uint8_t* y) {
  const byte_limits limits = limits_of(e);
  alignas(32) uint8_t bytes[group_channels];
#pragma GCC unroll 2
  for (int64_t first = 0; first < 16; first += 8) {
    __m256i whole[4];
#pragma GCC unroll 4
    for (int64_t i = 0; i < 4; ++i)
      whole[i] = rounded(load(sums + first + i * 16), columns_of(e, first + i * 16));
    store(bytes + first * 4, bytes_of(limits, whole[0], whole[1], whole[2], whole[3]));
  }
  std::memcpy(y, bytes, channels == group_channels ? group_channels : static_cast<size_t>(channels));
}

} // namespace

TROUPE_AVX2 void rows_to_bytes(const int32_t* sums, int64_t rows, const byte_end& e, int64_t first, int64_t count,
                               uint8_t* y, int64_t y_step) {
  const byte_limits limits = limits_of(e);
  const column_end left = columns_of(e, first), right = columns_of(e, first + 8);
  // Lanes have columns 0 to 3 and 4 to 7 of the four registers.
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  for (int64_t row = 0; row < rows; row += 2, sums += 2 * block_columns, y += 2 * y_step) {
    const __m256i packed =
        bytes_of(limits, rounded(load(sums), left), rounded(load(sums + 8), right),
                 rounded(load(sums + block_columns), left), rounded(load(sums + block_columns + 8), right));
    alignas(32) uint8_t bytes[2 * block_columns];
    store(bytes, _mm256_permutevar8x32_epi32(packed, order));
    for (int64_t i = 0; i < std::min<int64_t>(2, rows - row); ++i)
      if (count == block_columns)
        std::memcpy(y + i * y_step, bytes + i * block_columns, block_columns);
      else
        std::memcpy(y + i * y_step, bytes + i * block_columns, static_cast<size_t>(count));
  }
}

void pixels_to_bytes(const int32_t* sums, int64_t pixels, const byte_end& e, int64_t channels, uint8_t* y,
                     int64_t y_step) {
  for (int64_t p = 0; p < pixels; ++p)
    pixel_to_bytes(sums + p * group_channels, e, channels, y + p * y_step);
}

} // namespace troupe::int8::avx2_ends

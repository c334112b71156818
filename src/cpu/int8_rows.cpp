#include "cpu/int8_rows.hpp"

#include "base/cpu_feature.hpp"
#include "cpu/int8_round.hpp"

#include <algorithm>
#include <cstring>
#include <immintrin.h>

// GCC 12 warns of its own intrinsics' undefined operands.
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace troupe::int8 {
namespace {

#define TROUPE_AVX512 [[gnu::target("avx512f,avx512bw,avx512vl,avx512dq")]]

/// What the rows of 16 columns share.
struct column_block {
  __mmask16 mask;
  __m512i correction, zero;
  __m512 scale, offset;
};

TROUPE_AVX512 column_block load_block(const finished_rows& f, int64_t first) {
  const int64_t count = std::min<int64_t>(16, f.columns - first);
  const auto mask = static_cast<__mmask16>((1u << count) - 1);
  return {mask, _mm512_maskz_loadu_epi32(mask, f.correction + first), _mm512_maskz_loadu_epi32(mask, f.zero + first),
          _mm512_maskz_loadu_ps(mask, f.scale + first),
          f.offset ? _mm512_maskz_loadu_ps(mask, f.offset + first) : _mm512_setzero_ps()};
}

/// Returns a product that is rounded before it is added to anything.
TROUPE_AVX512 inline __m512 apart(__m512 product) {
  asm("" : "+v"(product));
  return product;
}

/// Real results of one row.
template <bool HasRowSums>
TROUPE_AVX512 __m512 real_row(const finished_rows& f, const column_block& b, int64_t row, int64_t first) {
  __m512i sum = _mm512_add_epi32(_mm512_loadu_si512(f.sums + row * f.sums_step + first), b.correction);
  if constexpr (HasRowSums)
    sum = _mm512_sub_epi32(sum, _mm512_mullo_epi32(_mm512_set1_epi32(f.row_sums[row]), b.zero));
  return _mm512_add_ps(apart(_mm512_mul_ps(_mm512_cvtepi32_ps(sum), b.scale)), b.offset);
}

template <bool HasRowSums, bool IsQuantised>
TROUPE_AVX512 void finish_block(const finished_rows& f, int64_t first) {
  const column_block b = load_block(f, first);
  const bool whole = f.columns - first >= 16;
  auto* y = static_cast<uint8_t*>(f.y) + first * (IsQuantised ? 1 : 4);
  for (int64_t row = 0; row < f.rows; ++row, y += f.y_step) {
    const __m512 real = real_row<HasRowSums>(f, b, row, first);
    if constexpr (!IsQuantised) {
      // NaN stays: of two operands that do not compare, these give the second.
      const __m512 limited = _mm512_min_ps(_mm512_set1_ps(f.high), _mm512_max_ps(_mm512_set1_ps(f.low), real));
      _mm512_mask_storeu_ps(y, b.mask, limited);
    } else {
      const __m512i moved = _mm512_add_epi32(avx512_rounded_quotient(real, f.end), _mm512_set1_epi32(f.end.zero));
      const __m512i limited =
          _mm512_min_epi32(_mm512_max_epi32(moved, _mm512_set1_epi32(f.end.least)), _mm512_set1_epi32(f.end.most));
      const __m128i bytes = _mm512_maskz_cvtepi32_epi8(0xffff, limited);
      if (whole)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(y), bytes);
      else
        _mm_mask_storeu_epi8(y, b.mask, bytes);
    }
  }
}

template <bool HasRowSums>
void finish_as(const finished_rows& f) {
  for (int64_t first = 0; first < f.columns; first += 16)
    f.is_quantised ? finish_block<HasRowSums, true>(f, first) : finish_block<HasRowSums, false>(f, first);
}

// -- the same with AVX2, 8 columns at a time

#define TROUPE_AVX2 [[gnu::target("avx2,fma")]]

struct narrow_block {
  __m256i mask, correction, zero;
  __m256 scale, offset;
};

TROUPE_AVX2 narrow_block load_narrow_block(const finished_rows& f, int64_t first) {
  const __m256i numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(f.columns - first)), numbers);
  return {mask, _mm256_maskload_epi32(f.correction + first, mask), _mm256_maskload_epi32(f.zero + first, mask),
          _mm256_maskload_ps(f.scale + first, mask),
          f.offset ? _mm256_maskload_ps(f.offset + first, mask) : _mm256_setzero_ps()};
}

/// Returns a product that is rounded before it is added to anything.
TROUPE_AVX2 inline __m256 apart(__m256 product) {
  asm("" : "+x"(product));
  return product;
}

template <bool HasRowSums>
TROUPE_AVX2 __m256 real_row(const finished_rows& f, const narrow_block& b, int64_t row, int64_t first) {
  __m256i sum = _mm256_maskload_epi32(f.sums + row * f.sums_step + first, b.mask);
  sum = _mm256_add_epi32(sum, b.correction);
  if constexpr (HasRowSums)
    sum = _mm256_sub_epi32(sum, _mm256_mullo_epi32(_mm256_set1_epi32(f.row_sums[row]), b.zero));
  return _mm256_add_ps(apart(_mm256_mul_ps(_mm256_cvtepi32_ps(sum), b.scale)), b.offset);
}

template <bool HasRowSums, bool IsQuantised>
TROUPE_AVX2 void finish_narrow_block(const finished_rows& f, int64_t first) {
  const narrow_block b = load_narrow_block(f, first);
  const auto count = static_cast<size_t>(std::min<int64_t>(8, f.columns - first));
  // The first byte of each integer, in each 16-byte lane.
  const __m256i first_bytes = _mm256_set1_epi64x(0x0c080400);
  auto* y = static_cast<uint8_t*>(f.y) + first * (IsQuantised ? 1 : 4);
  for (int64_t row = 0; row < f.rows; ++row, y += f.y_step) {
    const __m256 real = real_row<HasRowSums>(f, b, row, first);
    if constexpr (!IsQuantised) {
      // NaN stays: of two operands that do not compare, these give the second.
      const __m256 limited = _mm256_min_ps(_mm256_set1_ps(f.high), _mm256_max_ps(_mm256_set1_ps(f.low), real));
      _mm256_maskstore_ps(reinterpret_cast<float*>(y), b.mask, limited);
    } else {
      const __m256i moved = _mm256_add_epi32(avx2_rounded_quotient(real, f.end), _mm256_set1_epi32(f.end.zero));
      const __m256i limited =
          _mm256_min_epi32(_mm256_max_epi32(moved, _mm256_set1_epi32(f.end.least)), _mm256_set1_epi32(f.end.most));
      const __m256i bytes = _mm256_shuffle_epi8(limited, first_bytes);
      const __m128i eight = _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
      if (count == 8)
        _mm_storeu_si64(y, eight);
      else {
        const int64_t all = _mm_cvtsi128_si64(eight);
        std::memcpy(y, &all, count);
      }
    }
  }
}

template <bool HasRowSums>
void finish_as_avx2(const finished_rows& f) {
  for (int64_t first = 0; first < f.columns; first += 8)
    f.is_quantised ? finish_narrow_block<HasRowSums, true>(f, first) : finish_narrow_block<HasRowSums, false>(f, first);
}

} // namespace

bool can_finish_rows() {
  return cpu_has(cpu_feature::avx2);
}

void finish_rows(const finished_rows& f) {
  if (cpu_has(cpu_feature::avx512))
    f.row_sums ? finish_as<true>(f) : finish_as<false>(f);
  else
    f.row_sums ? finish_as_avx2<true>(f) : finish_as_avx2<false>(f);
}

} // namespace troupe::int8

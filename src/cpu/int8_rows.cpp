#include "cpu/int8_rows.hpp"

#include <algorithm>
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

/// Real results of one row.
template <bool HasRowSums>
TROUPE_AVX512 __m512 real_row(const finished_rows& f, const column_block& b, int64_t row, int64_t first) {
  __m512i sum = _mm512_add_epi32(_mm512_loadu_si512(f.sums + row * f.sums_step + first), b.correction);
  if constexpr (HasRowSums)
    sum = _mm512_sub_epi32(sum, _mm512_mullo_epi32(_mm512_set1_epi32(f.row_sums[row]), b.zero));
  return _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), b.scale, b.offset);
}

/// Returns ⌊real⌉, halves to even. What is too large for an integer is a large one, what is too small (or NaN) a small one; both leave room
/// for a zero point.
TROUPE_AVX512 __m512i rounded(__m512 real) {
  return _mm512_cvtps_epi32(_mm512_max_ps(_mm512_min_ps(_mm512_set1_ps(1e9f), real), _mm512_set1_ps(-1e9f)));
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
      const __m512i moved = _mm512_add_epi32(rounded(real), _mm512_set1_epi32(f.end.zero));
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

/// Rounded results of 16 channels of a group, in the order of packed channels.
TROUPE_AVX512 __m512i rounded_channels(const finished_channels& f, __m512i sums, int64_t first) {
  const __m512i whole = _mm512_add_epi32(sums, _mm512_loadu_si512(f.correction + first));
  return rounded(
      _mm512_fmadd_ps(_mm512_cvtepi32_ps(whole), _mm512_loadu_ps(f.scale + first), _mm512_loadu_ps(f.offset + first)));
}

} // namespace

bool can_finish_rows() {
  static const bool can =
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  return can;
}

void finish_rows(const finished_rows& f) {
  f.row_sums ? finish_as<true>(f) : finish_as<false>(f);
}

TROUPE_AVX512 void finish_channels(const finished_channels& f, const int32_t* sums) {
  __m512i y[4];
#pragma GCC unroll 4
  for (int64_t i = 0; i < 4; ++i)
    y[i] = rounded_channels(f, _mm512_loadu_si512(sums + i * 16), i * 16);
  // Packing works within 16-byte lanes, as the unpacking did: so channels are in order again. It saturates, and so does the addition.
  const __m512i zero = _mm512_set1_epi16(static_cast<int16_t>(f.end.zero));
  const __m512i low = _mm512_adds_epi16(_mm512_packs_epi32(y[0], y[1]), zero);
  const __m512i high = _mm512_adds_epi16(_mm512_packs_epi32(y[2], y[3]), zero);
  const auto least = _mm512_set1_epi8(static_cast<char>(f.end.least)),
             most = _mm512_set1_epi8(static_cast<char>(f.end.most));
  const __m512i bytes = f.is_signed ? _mm512_min_epi8(_mm512_max_epi8(_mm512_packs_epi16(low, high), least), most)
                                    : _mm512_min_epu8(_mm512_max_epu8(_mm512_packus_epi16(low, high), least), most);
  if (f.channels >= 64)
    _mm512_storeu_si512(f.y, bytes);
  else
    _mm512_mask_storeu_epi8(f.y, (__mmask64{1} << f.channels) - 1, bytes);
}

} // namespace troupe::int8

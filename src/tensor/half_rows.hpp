// Rows of 16-bit floats to and from float32, as fast as memory: arithmetic on bits without branches, which compilers
// vectorise for any processor; where there is an instruction that narrows eight at a time, that one, with the same
// results at a quarter of the time. (Conversions by `_Float16` are one call or instruction an element on most.)
#pragma once

#include "troupe/float16.hpp"

#include <bit>
#include <cstdint>

#ifdef __F16C__
#include <immintrin.h>
#endif

namespace troupe {

/// The largest finite float16, and the smallest normal one.
inline constexpr float largest_float16 = 65504, least_normal_float16 = 6.103515625e-5f;

/// Returns a half's value; exact.
inline float widened(float16 half) {
  const uint32_t magnitude = (half.bits & 0x7fffu) << 13, sign = (half.bits & 0x8000u) << 16;
  // The exponent's bias differs by 112; a product moves subnormal halves, too, to where they are normal.
  const auto finite = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  const uint32_t special = magnitude | 0x7f800000u; // infinity or NaN
  return std::bit_cast<float>((magnitude >= 0x0f800000u ? special : finite) | sign);
}

/// Returns the half nearest to `value`, ties to even; beyond the range it is infinite, NaN stays NaN.
inline float16 narrowed(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  // Normal halves: 13 bits less, and a carry may go on into the exponent.
  const uint32_t normal = ((magnitude + 0xfffu + (magnitude >> 13 & 1)) >> 13) - (112u << 10);
  // Subnormal ones are multiples of 2^-24, to which floats from 0.5 on are rounded.
  const uint32_t small = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t finite = magnitude < 0x38800000u ? small : normal;
  const uint32_t special = magnitude > 0x7f800000u ? 0x7e00u | (magnitude >> 13 & 0x3ffu) : 0x7c00u;
  float16 half;
  half.bits = static_cast<uint16_t>((magnitude >= 0x477ff000u ? special : finite) | (bits >> 16 & 0x8000u));
  return half;
}

inline void widen_row(const float16* from, float* to, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i)
    to[i] = widened(from[i]);
}

inline void narrow_row(const float* from, float16* to, int64_t n) {
  int64_t done = 0;
#ifdef __F16C__
  for (; done + 8 <= n; done += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + done),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + done), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#endif
#pragma omp simd
  for (int64_t i = done; i < n; ++i)
    to[i] = narrowed(from[i]);
}

inline void widen_row(const bfloat16* from, float* to, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i)
    to[i] = from[i];
}

inline void narrow_row(const float* from, bfloat16* to, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i)
    to[i] = bfloat16(from[i]);
}

} // namespace troupe

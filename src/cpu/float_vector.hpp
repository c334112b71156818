// A register of floats, as wide as the processor that this is compiled for has them.
#pragma once

#include <cstdint>
#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace troupe {

#if defined(__AVX512F__)
inline constexpr int64_t float_lanes = 16;
#elif defined(__AVX__)
inline constexpr int64_t float_lanes = 8;
#else
inline constexpr int64_t float_lanes = 4;
#endif

/// May be read and written at any float's address.
using float_vector = float __attribute__((vector_size(float_lanes * sizeof(float)), aligned(4), may_alias));

#if defined(__AVX2__) && !defined(__AVX512F__)
/// Returns a mask of the first `count` lanes.
inline __m256i first_lanes(int64_t count) {
  const __m256i numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), numbers);
}
#endif

/// Reads the first `count` lanes, at most all; the others are 0.
inline float_vector load_part(const float* from, int64_t count) {
  if (count >= float_lanes)
    return *reinterpret_cast<const float_vector*>(from);
#if defined(__AVX512F__)
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), from);
#elif defined(__AVX2__)
  return _mm256_maskload_ps(from, first_lanes(count));
#else
  float_vector read{};
  for (int64_t i = 0; i < count; ++i)
    read[i] = from[i];
  return read;
#endif
}

/// Writes the first `count` lanes, at most all.
inline void store_part(float* to, float_vector v, int64_t count) {
  if (count >= float_lanes) {
    *reinterpret_cast<float_vector*>(to) = v;
    return;
  }
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1u << count) - 1), v);
#elif defined(__AVX2__)
  _mm256_maskstore_ps(to, first_lanes(count), v);
#else
  for (int64_t i = 0; i < count; ++i)
    to[i] = v[i];
#endif
}

} // namespace troupe

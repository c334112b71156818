// Quotients by a scale as whole numbers, ⌊real / scale⌉, for the ends of products of bytes.
//
// A product with 1 / scale may be a unit in the last place off, which decides beside ties. Each correction by the
// remainder that a fused operation leaves exactly makes it better, and Markstein's theorem says that the second one
// gives the quotient as a division rounds it. A depthwise convolution's ends would take twice as long with divisions.
#pragma once

#include "cpu/int8_rows.hpp"

#include <immintrin.h>

namespace troupe::int8 {

/// Returns ⌊real / end.scale⌉, halves to even.
[[gnu::target("avx512f,avx512bw,avx512vl,avx512dq"), gnu::always_inline]] inline __m512i
avx512_rounded_quotient(__m512 real, const quantised_end& end) {
  const __m512 scale = _mm512_set1_ps(end.scale), inverse = _mm512_set1_ps(end.inverse);
  const __m512 guess = _mm512_mul_ps(real, inverse);
  const __m512 near = _mm512_fmadd_ps(_mm512_fnmadd_ps(scale, guess, real), inverse, guess);
  return _mm512_cvtps_epi32(_mm512_fmadd_ps(_mm512_fnmadd_ps(scale, near, real), inverse, near));
}

[[gnu::target("avx2,fma"), gnu::always_inline]] inline __m256i avx2_rounded_quotient(__m256 real,
                                                                                     const quantised_end& end) {
  const __m256 scale = _mm256_set1_ps(end.scale), inverse = _mm256_set1_ps(end.inverse);
  const __m256 guess = _mm256_mul_ps(real, inverse);
  const __m256 near = _mm256_fmadd_ps(_mm256_fnmadd_ps(scale, guess, real), inverse, guess);
  return _mm256_cvtps_epi32(_mm256_fmadd_ps(_mm256_fnmadd_ps(scale, near, real), inverse, near));
}

} // namespace troupe::int8

// exp, tanh, erf and the logistic function for float, without branches: loops over them vectorise.
//
// Accuracy: within 3 units in the last place of the exact value (erf: 2e-7 absolute); NaN stays NaN, infinities have their limits.
// The polynomials are fits of our own (weighted least squares on Chebyshev nodes, relative error below 1e-8; the tail of erf
// 2e-7), of e^r on |r| ≤ ½·ln 2, tanh(x)/x in x² on |x| < 0.63, erf(x)/x in x² on |x| < 1, and e^(x²)·erfc(x) in 1/x on [1, 4.1].
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace troupe::vector_math {

/// e^x.
inline float exp(float x) {
  // Beyond these the result is 0 or infinity anyway; comparisons are false for NaN, which passes.
  x = x < -104.f ? -104.f : x;
  x = x > 89.f ? 89.f : x;
  // Adding 1.5 · 2^23 rounds to an integer, which then is in the low bits.
  constexpr float magic = 12582912.f;
  const float shifted = x * 1.44269504f + magic;
  const float n = shifted - magic;
  const float r = (x - n * 0.693145752f) - n * 1.42860677e-6f; // ln 2 in two parts
  float p = 1.383572118e-03f;
  p = p * r + 8.375635371e-03f;
  p = p * r + 4.166828841e-02f;
  p = p * r + 1.666641086e-01f;
  p = p * r + 4.999999106e-01f;
  p = p * r + 1.f;
  p = p * r + 1.f;
  // 2^n in two factors, so that neither overflows before the product does.
  const int32_t k = std::bit_cast<int32_t>(shifted) - 0x4B400000, half = k >> 1;
  const float low = std::bit_cast<float>((half + 127) << 23), high = std::bit_cast<float>((k - half + 127) << 23);
  return p * low * high;
}

/// 1 / (1 + e^-x).
inline float sigmoid(float x) {
  return 1.f / (1.f + exp(-x));
}

inline float tanh(float x) {
  const float z = x * x;
  float p = -5.602643825e-03f;
  p = p * z + 2.053984068e-02f;
  p = p * z - 5.370528623e-02f;
  p = p * z + 1.333093196e-01f;
  p = p * z - 3.333325088e-01f;
  const float near = x * (1.f + z * p);
  const float far = 1.f - 2.f / (exp(2.f * x) + 1.f);
  return z < 0.4f ? near : far;
}

inline float erf(float x) {
  const float z = x * x;
  float p = 7.853779971e-05f;
  p = p * z - 8.010169258e-04f;
  p = p * z + 5.188324954e-03f;
  p = p * z - 2.685381100e-02f;
  p = p * z + 1.128358543e-01f;
  p = p * z - 3.761262596e-01f;
  p = p * z + 1.128379107f;
  const float near = x * p;
  float a = std::abs(x);
  a = a > 4.f ? 4.f : a; // erf(4) is 1 in float
  const float t = 1.f / a;
  float q = -1.609896123e-02f;
  q = q * t + 1.132608801e-01f;
  q = q * t - 3.411015868e-01f;
  q = q * t + 5.632675886e-01f;
  q = q * t - 4.989513457e-01f;
  q = q * t + 4.875441641e-02f;
  q = q * t + 5.581307411e-01f;
  q = q * t + 3.219037026e-04f;
  const float far = std::copysign(1.f - exp(-a * a) * q, x);
  return z < 1.f ? near : far;
}

// The same names for double, so that templates can use either.
inline double exp(double x) {
  return std::exp(x);
}
inline double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
inline double tanh(double x) {
  return std::tanh(x);
}
inline double erf(double x) {
  return std::erf(x);
}

} // namespace troupe::vector_math

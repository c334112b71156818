// The scalar functions that end products (src/ops/activation.hpp), and the exact functions they need.
//
// Vulkan lets exp, tanh and friends err by more than ONNX allows, and promises nothing about NaN in min and max. These are
// range-reduced polynomials (relative error below 1e-6), but where exp2's error is lost in what follows or stays below 1e-5 (tanh, sigmoid, erfc). Comparisons are written so
// that NaN stays NaN.
#ifndef TROUPE_ACTIVATION
#define TROUPE_ACTIVATION

#include "scalar.glsl"

bool exact_isnan(float x) {
  return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u;
}

/// e^x: x = n·ln 2 + r with |r| ≤ ln 2 / 2, and e^r as its series to r^7.
float exact_exp(float x) {
  if (exact_isnan(x))
    return x;
  if (x > 88.8)
    return uintBitsToFloat(0x7f800000u);
  if (x < -104.0)
    return 0.0;
  const float n = floor(fma(x, 1.44269504, 0.5));
  const float r = fma(n, -1.42860677e-6, fma(n, -0.693145752, x)); // ln 2 in two parts
  float p = fma(r, 1.0 / 5040.0, 1.0 / 720.0);
  p = fma(p, r, 1.0 / 120.0);
  p = fma(p, r, 1.0 / 24.0);
  p = fma(p, r, 1.0 / 6.0);
  p = fma(p, r, 0.5);
  p = fma(p, r, 1.0);
  p = fma(p, r, 1.0);
  const int half_n = int(n) >> 1; // in two factors: 2^128 and 2^-149 have no float exponent of their own
  return p * uintBitsToFloat(uint(half_n + 127) << 23) * uintBitsToFloat(uint(int(n) - half_n + 127) << 23);
}

/// e^x by the device's exp2: a relative error of about |x| · 1e-7, where no more of it is left in the result; a fifth of the
/// instructions of exact_exp.
float fast_exp(float x) {
  return exp2(1.44269504 * x);
}

/// tanh x: its series near 0, 1 − 2 / (e^2x + 1) elsewhere.
float exact_tanh(float x) {
  const float a = abs(x), s = x * x;
  if (a < 0.4) {
    float p = fma(s, 21844.0 / 6081075.0, -1382.0 / 155925.0);
    p = fma(p, s, 62.0 / 2835.0);
    p = fma(p, s, -17.0 / 315.0);
    p = fma(p, s, 2.0 / 15.0);
    p = fma(p, s, -1.0 / 3.0);
    return fma(p * s, x, x);
  }
  if (exact_isnan(x))
    return x;
  const float t = a > 15.0 ? 1.0 : 1.0 - 2.0 / (fast_exp(2.0 * a) + 1.0);
  return x < 0.0 ? -t : t;
}

/// erfc z for z ≥ 0: e^(−z²) · t · P(t) with t = 1 / (1 + z / 2); P interpolates at Chebyshev nodes (error 5e-8).
float erfc_positive(float z) {
  z = min(z, 16.0); // beyond, e^(−z²) is 0; divisors would be beyond 2^126
  const float t = 1.0 / fma(0.5, z, 1.0);
  float p = fma(t, -0.0590672282, 0.284682350);
  p = fma(p, t, -0.487647156);
  p = fma(p, t, 0.278808830);
  p = fma(p, t, -0.0272676793);
  p = fma(p, t, 0.202998351);
  p = fma(p, t, 0.243019925);
  p = fma(p, t, 0.282386753);
  p = fma(p, t, 0.282085815);
  return fast_exp(-z * z) * t * p;
}

/// erf x: its series near 0, 1 − erfc elsewhere.
float exact_erf(float x) {
  const float a = abs(x), s = x * x;
  if (a < 0.5) {
    float p = fma(s, -1.0 / 1320.0, 1.0 / 216.0);
    p = fma(p, s, -1.0 / 42.0);
    p = fma(p, s, 0.1);
    p = fma(p, s, -1.0 / 3.0);
    return 1.12837917 * fma(p * s, x, x);
  }
  if (exact_isnan(x))
    return x;
  const float e = 1.0 - erfc_positive(a);
  return x < 0.0 ? -e : e;
}

/// 1 / (1 + e^−x); 0 if divisors would be beyond 2^126, the largest that Vulkan divides by accurately.
float exact_sigmoid(float x) {
  return exact_isnan(x) ? x : x < -87.0 ? 0.0 : 1.0 / (1.0 + fast_exp(-x));
}

/// act(x); `code` should be a specialisation constant. If comparisons make a min or max, NaN is set apart by its bits: drivers
/// turn them into instructions that drop it (seen on NVIDIA).
float activate(uint code, float x, float alpha, float beta) {
  if (code == scalar_same)
    return x;
  if (code == scalar_relu)
    return exact_isnan(x) ? x : (x < 0.0 ? 0.0 : x);
  if (code == scalar_clip) {
    const float low = x < alpha ? alpha : x;
    return exact_isnan(x) ? x : (low > beta ? beta : low);
  }
  if (code == scalar_sigmoid)
    return exact_sigmoid(x);
  if (code == scalar_tangent_h)
    return exact_tanh(x);
  if (code == scalar_hard_swish || code == scalar_hard_sigmoid) {
    const bool swish = code == scalar_hard_swish;
    float gate = swish ? fma(x, 1.0 / 6.0, 0.5) : alpha * x + beta;
    gate = gate < 0.0 ? 0.0 : gate;
    gate = gate > 1.0 ? 1.0 : gate;
    return exact_isnan(x) ? x : (swish ? x * gate : gate);
  }
  if (code == scalar_leaky_relu)
    return x < 0.0 ? alpha * x : x;
  if (code == scalar_swish)
    return x * exact_sigmoid(alpha * x);
  if (code == scalar_gelu) {
    const float c = erfc_positive(abs(x) * 0.707106781);
    return exact_isnan(x) ? x : 0.5 * x * (x < 0.0 ? c : 2.0 - c);
  }
  // 1 + tanh u = 2 / (1 + e^−2u): no cancellation if u is far below 0.
  const float u = 0.797884561 * fma(0.044715 * x * x, x, x);
  return x * exact_sigmoid(2.0 * u);
}

#endif

// The scalar functions that end products (src/ops/activation.hpp), and the exact functions they need.
//
// Vulkan lets exp, tanh and friends err by more than ONNX allows, promises nothing about NaN in min and max, and may
// round between the product and the sum of fma. These are range-reduced polynomials, whose relative error is below
// 2e-6, also with the worst exp2 and division that Vulkan allows. Comparisons are written so that NaN stays NaN. Tests
// compile this file as C++ (tests/shaders/float_math_test.cpp).
#ifndef TROUPE_ACTIVATION
#define TROUPE_ACTIVATION

#include "scalar.glsl"

bool exact_isnan(float x) {
  return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u;
}

/// The first 12 bits of x: products of two such numbers are exact.
float upper_bits(float x) {
  return uintBitsToFloat(floatBitsToUint(x) & 0xfffff000u);
}

/// A number of some 48 bits: high + low.
struct long_float {
  float high, low;
};

/// a · b, also where the device rounds before it adds: Vulkan's fma may.
long_float long_product(float a, float b) {
  const float a1 = upper_bits(a), b1 = upper_bits(b), a2 = a - a1, b2 = b - b1;
  long_float p;
  precise const float high = a * b;
  precise const float low = ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2;
  p.high = high;
  p.low = low;
  return p;
}

/// x − n · ln 2, ln 2 in two parts of which n times the first is exact. `precise`, since lavapipe's compiler otherwise
/// adds the two parts first, and without fma, on which `precise` has no effect there.
float without_ln2(float x, float n) {
  precise const float most = x - n * 0.693145752;
  precise const float r = most - n * 1.42860677e-6;
  return r;
}

/// e^(x + rest) · 2^shift for −105 ≤ x ≤ 90 and a small rest: x = n·ln 2 + r with |r| ≤ ln 2 / 2, and e^r as its series
/// to r^7.
float scaled_exp(float x, float rest, int shift) {
  const float n = floor(fma(x, 1.44269504, 0.5));
  const float r = without_ln2(x, n) + rest;
  float p = fma(r, 1.0 / 5040.0, 1.0 / 720.0);
  p = fma(p, r, 1.0 / 120.0);
  p = fma(p, r, 1.0 / 24.0);
  p = fma(p, r, 1.0 / 6.0);
  p = fma(p, r, 0.5);
  p = fma(p, r, 1.0);
  p = fma(p, r, 1.0);
  // In two factors: 2^128 and 2^-149 have no float exponent of their own.
  const int power = int(n) + shift, half_power = power >> 1;
  return p * uintBitsToFloat(uint(half_power + 127) << 23) * uintBitsToFloat(uint(power - half_power + 127) << 23);
}

/// e^x
float exact_exp(float x) {
  if (exact_isnan(x))
    return x;
  if (x > 88.8)
    return uintBitsToFloat(0x7f800000u);
  return x < -104.0 ? 0.0 : scaled_exp(x, 0.0, 0);
}

/// e^x by the device's exp2: a relative error of about |x| · 1e-7, where no more of it is left in the result; a fifth
/// of the instructions of exact_exp.
float fast_exp(float x) {
  return exp2(1.44269504 * x);
}

/// e^(x + rest) for |x| ≤ 87 and a small rest, by the device's exp2 of at most 1/2, which errs by less than 6e-7.
float short_exp(float x, float rest) {
  const float n = floor(fma(x, 1.44269504, 0.5));
  const float r = without_ln2(x, n) + rest;
  return exp2(1.44269504 * r) * uintBitsToFloat(uint(int(n) + 127) << 23);
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

/// e^(z²) · erfc z for z ≥ 0: t · P(t) with t = 1 / (1 + z / 2); P interpolates at Chebyshev nodes (error 5e-8).
float erfc_factor(float z) {
  const float t = 1.0 / fma(0.5, z, 1.0);
  float p = fma(t, -0.0590672282, 0.284682350);
  p = fma(p, t, -0.487647156);
  p = fma(p, t, 0.278808830);
  p = fma(p, t, -0.0272676793);
  p = fma(p, t, 0.202998351);
  p = fma(p, t, 0.243019925);
  p = fma(p, t, 0.282386753);
  return t * fma(p, t, 0.282085815);
}

/// erfc (z + rest) for z ≥ 0 and a small rest.
float erfc_positive(float z, float rest) {
  if (z > 9.3) // e^(−z²) is subnormal
    return 0.0;
  const float z1 = upper_bits(z);
  return short_exp(-z1 * z1, -(z - z1) * (z + z1) - 2.0 * z * rest) * erfc_factor(z); // z1² is exact
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
  const float e = 1.0 - erfc_positive(a, 0.0);
  return x < 0.0 ? -e : e;
}

/// 1 / (1 + e^−(x + rest)) for a small rest; 0 if divisors would be beyond 2^126, the largest that Vulkan divides by
/// accurately.
float long_sigmoid(float x, float rest) {
  return exact_isnan(x) ? x : x < -87.0 ? 0.0 : 1.0 / (1.0 + short_exp(x > 87.0 ? -87.0 : -x, -rest));
}
float exact_sigmoid(float x) {
  return long_sigmoid(x, 0.0);
}

/// x / (1 + e^(−alpha x)). Far below 0 it is as exact as the exponent, which has more digits than a float then.
float exact_swish(float x, float alpha) {
  if (alpha == 1.0 || !(alpha * x < -4.0 && alpha * x > -100.0))
    return x * exact_sigmoid(alpha * x);
  const long_float u = long_product(alpha, x);
  return x * long_sigmoid(u.high, u.low);
}

/// x · (1 + tanh v) / 2 = x / (1 + e^−2v) with v = √(2/π) (x + 0.044715 x³): no cancellation if v is far below 0. There
/// the exponent 2v = x (a + b x²) has more digits than a float.
float exact_gelu_tanh(float x) {
  const float a = 1.59576917, b = 0.0713548139, a_rest = -4.53406803e-8, b_rest = 2.3988324e-9;
  if (!(x < -2.0 && x > -12.0))
    return x * exact_sigmoid(x * fma(b * x, x, a));
  const long_float square = long_product(x, x), cube = long_product(b, square.high);
  precise const float sum = a + cube.high;
  precise const float lost = cube.high > a ? a - (sum - cube.high) : cube.high - (sum - a);
  const float rest = lost + (cube.low + (b * square.low + (b_rest * square.high + a_rest)));
  const long_float v = long_product(x, sum);
  return x * long_sigmoid(v.high, fma(x, rest, v.low));
}

/// act(x); `code` should be a specialisation constant. If comparisons make a min or max, NaN is set apart by its bits:
/// drivers turn them into instructions that drop it (seen on NVIDIA).
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
  if (code == scalar_tanh)
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
    return exact_swish(x, alpha);
  if (code == scalar_gelu) {
    const long_float z = long_product(abs(x), 0.707106769); // far below 0, e^(−z²) would lose digits by z's rounding
    const float c = erfc_positive(z.high, fma(abs(x), 1.21016171e-8, z.low));
    return exact_isnan(x) ? x : 0.5 * x * (x < 0.0 ? c : 2.0 - c);
  }
  return exact_gelu_tanh(x);
}

/// 1 / (1 + e^−x)
float short_sigmoid(float x) {
  return 1.0 / (1.0 + fast_exp(-x));
}

/// act(x) for a result of float16: within 2e-5, a twentieth of its rounding, in a few instructions. Kernels by matrices
/// of groups have them once for each element of an invocation.
float activate_half(uint code, float x, float alpha, float beta) {
  if (code == scalar_sigmoid)
    return short_sigmoid(x);
  if (code == scalar_swish)
    return x * short_sigmoid(alpha * x);
  if (code == scalar_gelu) {
    const float z = 0.707106769 * abs(x), c = fast_exp(-z * z) * erfc_factor(z);
    return 0.5 * x * (x < 0.0 ? c : 2.0 - c);
  }
  if (code == scalar_gelu_tanh)
    return x * short_sigmoid(x * fma(0.0713548139 * x, x, 1.59576917));
  return activate(code, x, alpha, beta);
}

#endif

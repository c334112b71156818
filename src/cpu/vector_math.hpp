// Elementary functions of floats as branch-free polynomials that compilers vectorise: always inline, since a loop that
// calls one is not. Errors are below 4e-7, relative for exp and sigmoid, absolute for erf and tanh.
#pragma once

#include <bit>
#include <cstdint>

namespace troupe::fast {

/// e^x, or e^x − 1 without cancellation near 0: 2^n · (1 + m) with n = round(x / ln 2). Overflow gives infinity, powers
/// below the smallest normal number are 0, NaN stays.
template <bool MinusOne = false>
[[gnu::always_inline]] inline float exp(float x) {
  // Adding 1.5 · 2^23 rounds to an integer and leaves it in the low bits.
  constexpr float magic = 12582912.f, log2e = 1.44269504088896341f;
  constexpr float ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
  const float clamped = x > 88.72283f ? 88.72283f : x < -87.33655f ? -87.33655f : x;
  const float shifted = clamped * log2e + magic;
  const float n = shifted - magic;
  const float r = (clamped - n * ln2_high) - n * ln2_low;
  // Taylor to degree 7 at |r| ≤ ln 2 / 2: the next term is below 6e-9.
  float p = 1.f / 5040;
  p = p * r + 1.f / 720;
  p = p * r + 1.f / 120;
  p = p * r + 1.f / 24;
  p = p * r + 1.f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.f;
  const float m = p * r;
  // n may be 128: two factors keep the exponent in range.
  const int32_t bits = std::bit_cast<int32_t>(shifted) - 0x4b400000;
  const int32_t half = bits >> 1;
  const float power =
      (m + 1.f) * std::bit_cast<float>((half + 127) << 23) * std::bit_cast<float>((bits - half + 127) << 23);
  const float y = !MinusOne ? power : n == 0.f ? m : power - 1.f;
  const float high = x > 88.72283f ? std::bit_cast<float>(0x7f800000) : y;
  const float low = x < -87.33655f ? (MinusOne ? -1.f : 0.f) : high;
  return x == x ? low : x;
}

/// ln(1 + x) for 0 ≤ x ≤ 1: 2 artanh(x / (2 + x)) as its series.
[[gnu::always_inline]] inline float log1p(float x) {
  const float t = x / (2.f + x), s = t * t;
  // t + t³/3 + … + t¹³/13: at t = 1/3 the next term is below 2e-8 of the sum.
  float p = 1.f / 13;
  p = p * s + 1.f / 11;
  p = p * s + 1.f / 9;
  p = p * s + 1.f / 7;
  p = p * s + 1.f / 5;
  p = p * s + 1.f / 3;
  return 2.f * (t + t * s * p);
}

/// 1 / (1 + e^-x)
[[gnu::always_inline]] inline float sigmoid(float x) {
  return 1.f / (1.f + exp(-x));
}

/// (1 − e^-2x) / (1 + e^-2x); a Taylor series near 0, if the quotient would cancel.
[[gnu::always_inline]] inline float tanh(float x) {
  const float a = x < 0 ? -x : x;
  const float e = exp(-2.f * a);
  const float q = (1.f - e) / (1.f + e);
  const float s = a * a;
  // tanh a = a − a³/3 + 2a⁵/15 − 17a⁷/315 + 62a⁹/2835: below 0.3 the next term is below 2e-8.
  const float t = a * (1.f + s * (-1.f / 3 + s * (2.f / 15 + s * (-17.f / 315 + s * (62.f / 2835)))));
  const float y = a < 0.3f ? t : q;
  return x < 0 ? -y : y;
}

/// The error function: Abramowitz and Stegun 7.1.26 (1.5e-7 absolute) from 0.5 on, below it a Taylor series, which is
/// good relative to small results too.
[[gnu::always_inline]] inline float erf(float x) {
  const float a = x < 0 ? -x : x;
  const float s = x * x;
  // 2/√π · (a − a³/3 + a⁵/10 − a⁷/42 + a⁹/216 − a¹¹/1320)
  const float near = 1.1283791671f * a *
                     (1.f + s * (-1.f / 3 + s * (1.f / 10 + s * (-1.f / 42 + s * (1.f / 216 + s * (-1.f / 1320))))));
  const float t = 1.f / (1.f + 0.3275911f * a);
  const float poly =
      t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
  const float far = 1.f - poly * exp(-s);
  const float y = a < 0.5f ? near : far;
  return x < 0 ? -y : y;
}

/// v limited to ±200, where e^v is 0 or infinity, as a float and what that leaves.
struct exponent {
  float high, low;
};
[[gnu::always_inline]] inline exponent exponent_of(double v) {
  const double limited = v > 200 ? 200 : v < -200 ? -200 : v;
  const auto high = static_cast<float>(limited);
  return {high, static_cast<float>(limited - high)};
}

/// 1 / (1 + e^−v)
[[gnu::always_inline]] inline float sigmoid(exponent v) {
  return 1.f / (1.f + exp(-v.high) * (1.f - v.low));
}

/// x · Φ(x), relatively exact far below 0, too: e^(−x²/2) · t · P(t) is erfc(|x| / √2) with t = 1 / (1 + |x| / √8).
[[gnu::always_inline]] inline float gelu(float x) {
  const double v = x;
  const exponent square = exponent_of(-0.5 * v * v);
  const float t = 1.f / (1.f + 0.35355339059f * (x < 0 ? -x : x));
  const float p =
      0.282085815f +
      t * (0.282386753f +
           t * (0.243019925f +
                t * (0.202998351f +
                     t * (-0.0272676793f +
                          t * (0.278808830f + t * (-0.487647156f + t * (0.284682350f + t * -0.0590672282f)))))));
  const float c = exp(square.high) * (1.f + square.low) * t * p;
  return 0.5f * x * (x < 0 ? c : 2.f - c);
}

/// x · (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2
[[gnu::always_inline]] inline float gelu_tanh(float x) {
  const double v = x;
  return x * sigmoid(exponent_of(v * (1.59576912160573071 + 0.0713548162726009 * v * v)));
}

/// x / (1 + e^(−alpha x))
[[gnu::always_inline]] inline float swish(float x, float alpha) {
  return x * sigmoid(exponent_of(static_cast<double>(alpha) * x));
}

} // namespace troupe::fast

namespace troupe {

/// What scalar_formulas.hpp computes with in vectorised loops.
struct vector_math {
  static float exp(float x) { return fast::exp(x); }
  static float expm1(float x) { return fast::exp<true>(x); }
  static float log1p(float x) { return fast::log1p(x); }
  static float tanh(float x) { return fast::tanh(x); }
  static float erf(float x) { return fast::erf(x); }
  static float gelu(float x) { return fast::gelu(x); }
  static float gelu_tanh(float x) { return fast::gelu_tanh(x); }
  static float swish(float x, float alpha) { return fast::swish(x, alpha); }
};

} // namespace troupe

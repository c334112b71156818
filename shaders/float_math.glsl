// Float functions beyond activation.glsl's, accurate to a few units in the last place where drivers are not. Quotients inside series
// are the device's: their error is among those of the series.
#ifndef TROUPE_FLOAT_MATH
#define TROUPE_FLOAT_MATH

#include "activation.glsl"
#include "common.glsl"
#include "exact_arithmetic.glsl"

#define nan_value uintBitsToFloat(0x7fc00000u)

bool exact_isinf(float x) {
  return (floatBitsToUint(x) & 0x7fffffffu) == 0x7f800000u;
}

/// ln x: x = 2^e · m with m in [√½, √2), and ln m = 2 artanh((m − 1) / (m + 1)) as its series.
float exact_log(float x) {
  if (exact_isnan(x) || x < 0.0)
    return nan_value;
  if (x == 0.0)
    return -infinity;
  if (exact_isinf(x))
    return x;
  int e = 0;
  if (x < 1.17549435e-38) { // subnormal
    x *= 16777216.0;
    e = -24;
  }
  const uint bits = floatBitsToUint(x);
  e += int(bits >> 23) - 127;
  float m = uintBitsToFloat((bits & 0x7fffffu) | 0x3f800000u);
  if (m > 1.41421356) {
    m *= 0.5;
    ++e;
  }
  const float s = (m - 1.0) / (m + 1.0), t = s * s;
  float p = fma(t, 2.0 / 11.0, 2.0 / 9.0);
  p = fma(p, t, 2.0 / 7.0);
  p = fma(p, t, 2.0 / 5.0);
  p = fma(p, t, 2.0 / 3.0);
  const float ln_m = fma(p * t, s, 2.0 * s);
  return fma(float(e), 0.693145752, fma(float(e), 1.42860677e-6, ln_m));
}

/// ln(1 + x) without cancellation near 0.
float exact_log1p(float x) {
  const float u = 1.0 + x;
  return u == 1.0 ? x : (x == infinity ? x : exact_log(u) * (x / (u - 1.0)));
}

/// e^x − 1 without cancellation near 0.
float exact_expm1(float x) {
  if (abs(x) < 0.35) {
    float p = fma(x, 1.0 / 5040.0, 1.0 / 720.0);
    p = fma(p, x, 1.0 / 120.0);
    p = fma(p, x, 1.0 / 24.0);
    p = fma(p, x, 1.0 / 6.0);
    p = fma(p, x, 0.5);
    return fma(p * x, x, x);
  }
  return exact_exp(x) - 1.0;
}

/// sin(x + quadrant · π/2): x minus the nearest multiple of π/2 in three parts, then the series of sin or cos.
float sine_at(float x, int quadrant) {
  if (exact_isnan(x) || exact_isinf(x))
    return nan_value;
  const float n = floor(fma(x, 0.636619772, 0.5));
  const float r = fma(n, -7.54979013e-08, fma(n, -0.000483751297, fma(n, -1.5703125, x)));
  quadrant += int(n);
  const float s = r * r;
  float v;
  if ((quadrant & 1) != 0) {
    v = fma(s, 1.0 / 40320.0, -1.0 / 720.0);
    v = fma(v, s, 1.0 / 24.0);
    v = fma(v, s, -0.5);
    v = fma(v, s, 1.0);
  } else {
    v = fma(s, 1.0 / 362880.0, -1.0 / 5040.0);
    v = fma(v, s, 1.0 / 120.0);
    v = fma(v, s, -1.0 / 6.0);
    v = fma(v * s, r, r);
  }
  return (quadrant & 2) != 0 ? -v : v;
}

float exact_sin(float x) {
  return x == 0.0 ? x : sine_at(x, 0);
}

float exact_cos(float x) {
  return sine_at(x, 1);
}

float exact_tan(float x) {
  return exact_sin(x) / exact_cos(x);
}

/// atan x: |x| reduced below tan π/8 by atan x = π/2 − atan 1/x and π/4 + atan((x − 1) / (x + 1)); then its series.
float exact_atan(float x) {
  if (exact_isnan(x))
    return x;
  const float a = abs(x);
  float base = 0.0, z = a;
  if (a > 2.41421356) {
    base = 1.57079633;
    z = -1.0 / a;
  } else if (a > 0.414213562) {
    base = 0.785398163;
    z = (a - 1.0) / (a + 1.0);
  }
  const float s = z * z;
  float p = fma(s, -1.0 / 15.0, 1.0 / 13.0);
  p = fma(p, s, -1.0 / 11.0);
  p = fma(p, s, 1.0 / 9.0);
  p = fma(p, s, -1.0 / 7.0);
  p = fma(p, s, 1.0 / 5.0);
  p = fma(p, s, -1.0 / 3.0);
  const float r = base + fma(p * s, z, z);
  return x < 0.0 ? -r : r;
}

/// asin x = atan(x / √(1 − x²)), with 1 − x² as a product.
float exact_asin(float x) {
  if (abs(x) >= 1.0)
    return abs(x) == 1.0 ? x * 1.57079633 : nan_value;
  return exact_atan(x / sqrt((1.0 - x) * (1.0 + x)));
}

float exact_acos(float x) {
  if (!(abs(x) <= 1.0))
    return nan_value;
  return x == -1.0 ? 3.14159265 : 2.0 * exact_atan(sqrt((1.0 - x) / (1.0 + x)));
}

float exact_sinh(float x) {
  const float a = abs(x), m = exact_expm1(a > 88.0 ? a - 0.693147182 : a);
  const float r = a > 88.0 ? m : 0.5 * (m + m / (m + 1.0));
  return x < 0.0 ? -r : (x == 0.0 ? x : r);
}

float exact_cosh(float x) {
  const float e = exact_exp(abs(x) - 0.693147182);
  return e + 0.25 / e;
}

float exact_asinh(float x) {
  const float a = abs(x);
  const float r = a > 1.0e18 ? exact_log(a) + 0.693147182 : exact_log1p(a + a * a / (1.0 + sqrt(fma(a, a, 1.0))));
  return exact_isnan(x) || x == 0.0 ? x : (x < 0.0 ? -r : r);
}

float exact_acosh(float x) {
  const float t = x - 1.0;
  return x > 1.0e18 ? exact_log(x) + 0.693147182 : (x < 1.0 ? nan_value : exact_log1p(t + sqrt(t * (x + 1.0))));
}

float exact_atanh(float x) {
  return x == 0.0 ? x : 0.5 * (exact_log1p(x) - exact_log1p(-x));
}

/// x · tanh(ln(1 + e^x))
float exact_mish(float x) {
  const float e = exact_exp(x > 30.0 ? 30.0 : x), n = e * (e + 2.0);
  return x > 30.0 ? x : x * (n / (n + 2.0));
}

/// To the nearest integer, halves to the even one.
float exact_round(float x) {
  if (!(abs(x) < 8388608.0))
    return x;
  const float low = floor(x);
  precise const float rest = x - low; // of x as it is rounded: not in one operation with what computed it
  const float r = rest < 0.5 || (rest == 0.5 && low == 2.0 * floor(low * 0.5)) ? low : low + 1.0;
  return r == 0.0 && (floatBitsToUint(x) >> 31) != 0u ? -0.0 : r;
}

/// a^b as C's pow: e^(b · ln |a|) with ln |a| in two parts, and the sign of an odd integer power.
float exact_pow(float a, float b) {
  if (b == 0.0 || a == 1.0)
    return 1.0;
  if (exact_isnan(a) || exact_isnan(b))
    return nan_value;
  const bool integral = exact_isinf(b) || floor(b) == b;
  const bool odd = integral && abs(b) < 16777216.0 && 2.0 * floor(b * 0.5) != b;
  const bool negative = (floatBitsToUint(a) >> 31) != 0u;
  const float m = abs(a);
  if (exact_isinf(b))
    return m == 1.0 ? 1.0 : ((m > 1.0) == (b > 0.0) ? infinity : 0.0);
  if (m == 0.0 || exact_isinf(m)) {
    const float r = (m == 0.0) == (b > 0.0) ? 0.0 : infinity;
    return negative && odd ? -r : r;
  }
  if (negative && !integral)
    return nan_value;
  float r = 1.0;
  if (integral && abs(b) <= 64.0) { // by squaring: exact if the result is
    float base = m;
    for (uint n = uint(abs(b)); n > 0u; n >>= 1) {
      r = (n & 1u) != 0u ? r * base : r;
      base *= base;
    }
    r = b < 0.0 ? exact_quotient(1.0, r) : r;
  } else if (b == 0.5) {
    r = exact_root(m);
  } else {
    r = exact_exp(b * exact_log(m));
  }
  return negative && odd ? -r : r;
}

#endif

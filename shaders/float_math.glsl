// Float functions beyond activation.glsl's, accurate to a few units in the last place where drivers are not. Quotients
// inside series are the device's: their error is among those of the series.
#ifndef TROUPE_FLOAT_MATH
#define TROUPE_FLOAT_MATH

#include "activation.glsl"
#include "common.glsl"
#include "exact_arithmetic.glsl"

#define nan_value uintBitsToFloat(0x7fc00000u)

bool exact_isinf(float x) {
  return (floatBitsToUint(x) & 0x7fffffffu) == 0x7f800000u;
}

/// ln x = exponent · ln 2 + 2 artanh s for x = 2^exponent · m with m in [√½, √2) and s = (m − 1) / (m + 1).
struct log_parts {
  float m;
  int exponent;
};
/// Of a finite x above 0, in integers: subnormal numbers are right on devices that flush them, too.
log_parts log_parts_of(float x) {
  const binary_parts b = parts_of(floatBitsToUint(x));
  log_parts p;
  p.exponent = b.e - 127;
  p.m = uintBitsToFloat((b.m & 0x7fffffu) | 0x3f800000u);
  if (p.m > 1.41421356) {
    p.m *= 0.5;
    ++p.exponent;
  }
  return p;
}

/// 2 artanh s − 2 s for |s| ≤ 0.172, as its series.
float artanh_rest(float s) {
  const float t = s * s;
  float p = fma(t, 2.0 / 11.0, 2.0 / 9.0);
  p = fma(p, t, 2.0 / 7.0);
  p = fma(p, t, 2.0 / 5.0);
  p = fma(p, t, 2.0 / 3.0);
  return p * t * s;
}

/// ln x
float exact_log(float x) {
  const uint bits = floatBitsToUint(x);
  if ((bits & 0x7fffffffu) == 0u)
    return -infinity;
  if (exact_isnan(x) || (bits >> 31) != 0u)
    return nan_value;
  if (exact_isinf(x))
    return x;
  const log_parts p = log_parts_of(x);
  const float s = (p.m - 1.0) / (p.m + 1.0), e = float(p.exponent);
  return fma(e, 0.693145752, fma(e, 1.42860677e-6, artanh_rest(s) + 2.0 * s));
}

/// ln x of a finite x above 0 with some 40 bits.
long_float long_log(float x) {
  const log_parts p = log_parts_of(x);
  const float e = float(p.exponent), f = p.m - 1.0;
  precise const float g = p.m + 1.0;
  precise const float g_rest = p.m - (g - 1.0);
  const float s = f / g;
  const long_float back = long_product(s, g); // what s leaves of f
  precise const float s_rest = (((f - back.high) - back.low) - s * g_rest) / g;
  const float whole = e * 0.693145752; // exact
  precise const float high = whole + 2.0 * s;
  precise const float lost = whole == 0.0 ? 0.0 : 2.0 * s - (high - whole);
  const float rest = lost + fma(e, 1.42860682e-6, artanh_rest(s) + 2.0 * s_rest);
  precise const float sum = high + rest;
  precise const float sum_rest = rest - (sum - high);
  long_float l;
  l.high = sum;
  l.low = sum_rest;
  return l;
}

/// ln(1 + x) without cancellation near 0: there 2 artanh(x / (2 + x)).
float exact_log1p(float x) {
  if (x > -0.29 && x < 0.41) {
    const float s = x / (2.0 + x);
    return artanh_rest(s) + 2.0 * s;
  }
  return exact_log(1.0 + x);
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

/// x = quadrant · π/2 + r with |r| ≤ π/4, about.
struct turned {
  float r;
  int quadrant; // or another one that differs from it by a multiple of 4
};

/// Word `i` of the binary digits of 2 / π.
uint two_over_pi(int i) {
  if (i < 3)
    return i == 0 ? 0xa2f9836eu : i == 1 ? 0x4e441529u : 0xfc2757d1u;
  return i == 3 ? 0xf534ddc0u : i == 4 ? 0xdb629599u : 0x3c439041u;
}

/// Of a finite x of 2^13 or more (Payne and Hanek): x · 2/π in integers, without its multiples of 4 and with 62 bits
/// after the point.
turned turn_far(float x) {
  const uint bits = floatBitsToUint(x), m = (bits << 8) | 0x80000000u;
  const int e = int((bits >> 23) & 255u) - 158; // |x| = m · 2^e
  const int first = e < 2 ? 0 : (e - 2) >> 5;  // words before this one give multiples of 4 alone
  uint high0, low0, high1, low1, high2, low2, high3, low3;
  umulExtended(m, two_over_pi(first), high0, low0);
  umulExtended(m, two_over_pi(first + 1), high1, low1);
  umulExtended(m, two_over_pi(first + 2), high2, low2);
  umulExtended(m, two_over_pi(first + 3), high3, low3);
  const uint last = low2 + high3, carry3 = last < high3 ? 1u : 0u;
  // No carry is lost: a high word is below 2^32 − 1.
  high2 += carry3;
  const uint third = low1 + high2;
  high1 += third < high2 ? 1u : 0u;
  const uint second = low0 + high1, first_word = high0 + (second < high1 ? 1u : 0u);
  const int shift = e - 32 * first - 2;
  const bool small = shift < 0;
  const uint a = small ? first_word : second, b = small ? second : third, c = small ? third : last;
  const uint left = uint(small ? shift + 32 : shift);
  uint high = left == 0u ? a : (a << left) | (b >> (32u - left));
  uint low = left == 0u ? b : (b << left) | (c >> (32u - left));
  int quadrant = int(high >> 30);
  high = (high << 2) | (low >> 30);
  low <<= 2;
  const bool above = (high >> 31) != 0u; // nearer to the next quadrant
  if (above) {
    high = ~high + (low == 0u ? 1u : 0u);
    low = ~low + 1u;
    ++quadrant;
  }
  const float part = (float(high) * 2.32830644e-10 + float(low) * 5.42101086e-20) * 1.57079633;
  const bool negative = (bits >> 31) != 0u;
  turned t;
  t.r = above != negative ? -part : part;
  t.quadrant = negative ? -quadrant : quadrant;
  return t;
}

/// Of a finite x: where it is not far, x less a multiple of π/2 in four parts, of which the first three give exact
/// products.
turned turn(float x) {
  if (abs(x) > 10000.0)
    return turn_far(x);
  const float n = floor(fma(x, 0.636619772, 0.5));
  precise const float near = (x - n * 1.5703125) - n * 0.000483751297;
  precise const float r = (near - n * 7.54953362e-08) - n * 2.56334407e-12;
  turned t;
  t.r = r;
  t.quadrant = int(n);
  return t;
}

/// The sine of t and `quarters` quarter turns more, by the series of sin or cos.
float sine_at(turned t, int quarters) {
  const float r = t.r, s = r * r;
  const int quadrant = t.quadrant + quarters;
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

bool is_finite(float x) {
  return (floatBitsToUint(x) & 0x7fffffffu) < 0x7f800000u;
}

float exact_sin(float x) {
  return x == 0.0 ? x : (is_finite(x) ? sine_at(turn(x), 0) : nan_value);
}

float exact_cos(float x) {
  return is_finite(x) ? sine_at(turn(x), 1) : nan_value;
}

float exact_tan(float x) {
  if (!is_finite(x) || x == 0.0)
    return x == 0.0 ? x : nan_value;
  const turned t = turn(x);
  return sine_at(t, 0) / sine_at(t, 1);
}

/// atan x: |x| reduced below tan π/8 by atan x = π/2 − atan 1/x and π/4 + atan((x − 1) / (x + 1)); then its series.
float exact_atan(float x) {
  if (exact_isnan(x))
    return x;
  const float a = abs(x);
  float base = 0.0, z = a;
  if (a > 2.41421356) {
    base = 1.57079633;
    z = a > 1.0e18 ? 0.0 : -1.0 / a; // divisors beyond 2^126 are none
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
  const float a = abs(x);
  if (exact_isnan(x) || x == 0.0)
    return x;
  float r = infinity;
  if (a < 88.0) {
    const float m = exact_expm1(a);
    r = 0.5 * (m + m / (m + 1.0));
  } else if (a < 90.0) {
    r = scaled_exp(a, 0.0, -1);
  }
  return x < 0.0 ? -r : r;
}

float exact_cosh(float x) {
  const float a = abs(x);
  if (exact_isnan(x))
    return x;
  if (a >= 90.0)
    return infinity;
  const float e = scaled_exp(a, 0.0, -1);
  return a > 40.0 ? e : e + 0.25 / e;
}

float exact_asinh(float x) {
  const float a = abs(x);
  if (exact_isnan(x) || x == 0.0)
    return x;
  const float r = a > 1.0e18 ? exact_log(a) + 0.693147182 : exact_log1p(a + a * a / (1.0 + sqrt(fma(a, a, 1.0))));
  return x < 0.0 ? -r : r;
}

float exact_acosh(float x) {
  const float t = x - 1.0;
  return x > 1.0e18 ? exact_log(x) + 0.693147182 : (x < 1.0 ? nan_value : exact_log1p(t + sqrt(t * (x + 1.0))));
}

/// artanh x = ln(1 + 2x / (1 − x)) / 2
float exact_atanh(float x) {
  const float a = abs(x);
  if (x == 0.0 || exact_isnan(x))
    return x;
  if (a >= 1.0)
    return a == 1.0 ? x * infinity : nan_value;
  const float r = 0.5 * exact_log1p(2.0 * a / (1.0 - a));
  return x < 0.0 ? -r : r;
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

/// m^b of finite m above 0: e^(b · ln m), whose exponent has more digits than a float; or, for small whole numbers, by
/// squaring, which is exact if the result is.
float positive_pow(float m, float b) {
  if (floor(b) == b && abs(b) <= 16.0) {
    float r = 1.0, base = m;
    for (uint n = uint(abs(b)); n > 0u; n >>= 1) {
      r = (n & 1u) != 0u ? r * base : r;
      base *= base;
    }
    if (r > 1.0e-37 && r < 1.0e37) // else it is lost in overflow or subnormal numbers, or its inverse would be
      return b < 0.0 ? exact_quotient(1.0, r) : r;
  }
  if (b == 0.5)
    return exact_root(m);
  const long_float l = long_log(m);
  const float about = b * l.high;
  if (about > 89.0)
    return infinity;
  if (about < -104.0)
    return 0.0;
  const long_float z = long_product(b, l.high);
  return scaled_exp(z.high, fma(b, l.low, z.low), 0);
}

/// a^b as C's pow: with the sign of an odd integer power.
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
  float r;
  if (floatBitsToUint(m) == 0u || exact_isinf(m)) // not what a device takes for 0
    r = exact_isinf(m) == (b > 0.0) ? infinity : 0.0;
  else if (negative && !integral)
    return nan_value;
  else
    r = positive_pow(m, b);
  return negative && odd ? -r : r;
}

#endif

// Functions of doubles that GLSL lacks, accurate to a few units in the last place.
#ifndef TROUPE_DOUBLE_MATH
#define TROUPE_DOUBLE_MATH

#define double_infinity packDouble2x32(uvec2(0u, 0x7ff00000u))
#define double_largest packDouble2x32(uvec2(0xffffffffu, 0x7fefffffu))
#define double_nan packDouble2x32(uvec2(0u, 0x7ff80000u))

bool exact_isnan(double x) {
  const uvec2 words = unpackDouble2x32(x); // the low one first
  const uint high = words.y & 0x7fffffffu;
  return high > 0x7ff00000u || (high == 0x7ff00000u && words.x != 0u);
}

/// 2^n for −1022 ≤ n ≤ 1023.
double power_of_two(int n) {
  return packDouble2x32(uvec2(0u, uint(n + 1023) << 20));
}

/// e^x: x = n·ln 2 + r with |r| ≤ ln 2 / 2, and e^r as its series to r^13.
double exact_exp(double x) {
  if (exact_isnan(x))
    return x;
  if (x > 709.8lf)
    return double_infinity;
  if (x < -745.2lf)
    return 0.0lf;
  const double n = floor(fma(x, 1.4426950408889634074lf, 0.5lf));
  const double r = fma(n, -1.9082149292705877e-10lf, fma(n, -0.69314718036912381649lf, x)); // ln 2 in two parts
  double p = 1.0lf;
  [[unroll]] for (int k = 13; k > 0; --k)
    p = fma(p, r / double(k), 1.0lf);
  const int half_n = int(n) >> 1; // in two factors: results may have no exponent of their own
  return p * power_of_two(half_n) * power_of_two(int(n) - half_n);
}

/// ln x: x = 2^e · m with m in [√½, √2), and ln m = 2 artanh((m − 1) / (m + 1)) as its series.
double exact_log(double x) {
  if (exact_isnan(x) || x < 0.0lf)
    return double_nan;
  if (x == 0.0lf)
    return -double_infinity;
  if (x == double_infinity)
    return x;
  int e = 0;
  if (x < 2.2250738585072014e-308lf) { // subnormal
    x *= 18014398509481984.0lf;
    e = -54;
  }
  const uvec2 words = unpackDouble2x32(x);
  e += int(words.y >> 20) - 1023;
  double m = packDouble2x32(uvec2(words.x, (words.y & 0xfffffu) | 0x3ff00000u));
  if (m > 1.4142135623730951lf) {
    m *= 0.5lf;
    ++e;
  }
  const double s = (m - 1.0lf) / (m + 1.0lf), t = s * s;
  double p = 0.0lf;
  [[unroll]] for (int k = 25; k > 1; k -= 2)
    p = fma(p, t, 2.0lf / double(k));
  const double ln_m = fma(p * t, s, 2.0lf * s);
  return fma(double(e), 0.69314718036912381649lf, fma(double(e), 1.9082149292705877e-10lf, ln_m));
}

double exact_quotient(double a, double b) { return a / b; }
double exact_root(double a) { return sqrt(a); }

#endif

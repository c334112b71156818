// Quotients and square roots with IEEE's rounding, so that what is rounded, compared or cast after them is the CPU's.
//
// Vulkan lets a quotient err by 2.5 units in the last place and a root by about 5. So the device's own result, of
// mantissas in [1, 4), is a first guess; the exact remainder that it leaves decides, in integers, which no compiler
// rearranges and no float mode touches: subnormal operands and results are right on devices that flush them elsewhere,
// too. The remainder is small, so that its low 32 bits are all of it.
//
// Tests compile this file as C++ with worse guesses than devices may make (tests/shaders/exact_arithmetic_test.cpp).
#ifndef TROUPE_EXACT_ARITHMETIC
#define TROUPE_EXACT_ARITHMETIC

#ifndef GUESSED_QUOTIENT
#extension GL_EXT_control_flow_attributes : enable
#define UNROLLED [[unroll]]
#define GUESSED_QUOTIENT(a, b) ((a) / (b))
#define GUESSED_ROOT(a) sqrt(a)
#endif

const uint sign_bit = 0x80000000u, infinite_bits = 0x7f800000u, nan_bits = 0x7fc00000u;
const uint hidden_bit = 0x800000u; // 2^23, the first bit of every mantissa

/// A positive float: m · 2^(e − 150), m with its hidden bit.
struct binary_parts {
  uint m;
  int e;
};

/// The parts of a finite float above 0 from its bits.
binary_parts parts_of(uint bits) {
  binary_parts p;
  if (bits < hidden_bit) { // subnormal
    const int shift = 23 - findMSB(bits);
    p.m = bits << shift;
    p.e = 1 - shift;
  } else {
    p.m = (bits & (hidden_bit - 1u)) | hidden_bit;
    p.e = int(bits >> 23);
  }
  return p;
}

/// The bits of (q + r) · 2^(e − 150), rounded: q has 24 bits, r in [0, 1) is below, above or exactly a half by the sign
/// of `beside_half`, and 0 if `exact`.
uint rounded_bits(uint q, int e, int beside_half, bool exact) {
  if (e >= 255)
    return infinite_bits;
  if (e > 0) // never half-way: that would take a dividend of more bits
    return (uint(e) << 23) + q - hidden_bit + (beside_half > 0 ? 1u : 0u);
  const int shift = min(1 - e, 25); // subnormal: fewer bits, and all that is cut off decides
  const uint kept = q >> shift, cut = q - (kept << shift), middle = 1u << (shift - 1);
  const bool up = cut > middle || (cut == middle && (!exact || (kept & 1u) == 1u));
  return kept + (up ? 1u : 0u);
}

/// a / b, correctly rounded to nearest, halves to even.
float exact_quotient(float a, float b) {
  const uint bits_a = floatBitsToUint(a) & ~sign_bit, bits_b = floatBitsToUint(b) & ~sign_bit;
  const uint sign = (floatBitsToUint(a) ^ floatBitsToUint(b)) & sign_bit;
  if (bits_a - 1u >= infinite_bits - 1u || bits_b - 1u >= infinite_bits - 1u) { // zero, infinity or NaN
    if (bits_a > infinite_bits || bits_b > infinite_bits
        || (bits_a == bits_b && (bits_a == 0u || bits_a == infinite_bits)))
      return uintBitsToFloat(nan_bits);
    return uintBitsToFloat(sign | (bits_a == infinite_bits || bits_b == 0u ? infinite_bits : 0u));
  }
  const binary_parts x = parts_of(bits_a), y = parts_of(bits_b);
  const uint less = x.m < y.m ? 1u : 0u; // one bit more of the dividend makes the quotient of 24 bits
  const float near = GUESSED_QUOTIENT(uintBitsToFloat(x.m + ((126u + less) << 23)),
      uintBitsToFloat(y.m + (126u << 23)));
  // In [1, 2) but for the guess's error; four units too small, so that only additions are left.
  uint q = floatBitsToUint(max(near, 1.0f)) - (126u << 23) - 4u;
  uint r = (x.m << (23u + less)) - q * y.m;
  UNROLLED for (int step = 2; step >= 0; --step) {
    const uint part = y.m << step;
    if (r >= part) {
      r -= part;
      q += 1u << step;
    }
  }
  return uintBitsToFloat(sign | rounded_bits(q, x.e - y.e + 127 - int(less), int(2u * r - y.m), r == 0u));
}

/// Whether `guess`, a · (1 / b) of two correctly rounded operations, rounds to the same whole number as the exact a /
/// b. `whole` is the one that it rounds to, within ±256; b is ordinary. The inverse, the product and the quotient are
/// each half a unit in the last place off: less than 5e-5 there.
bool rounds_alike(float guess, float whole) {
  return abs(guess - whole) < 0.49995f;
}
bool is_ordinary(float b) {
  return abs(b) > 1e-30f && abs(b) < 1e30f;
}

/// x rounded to float16, halves to even, as a float; in integers, because a driver may leave out a conversion there and
/// back.
float rounded_to_half(float x) {
  const uint bits = floatBitsToUint(x) & ~sign_bit, sign = floatBitsToUint(x) & sign_bit;
  if (bits > infinite_bits)
    return x;
  if (bits >= 0x38800000u) { // 2^-14, the least normal one: 13 bits go
    const uint kept = (bits + 0xfffu + ((bits >> 13) & 1u)) & ~0x1fffu;
    return uintBitsToFloat(sign | (kept >= 0x47800000u ? infinite_bits : kept)); // from 65520 on
  }
  if (bits < 0x33000000u) // below 2^-25
    return uintBitsToFloat(sign);
  // A multiple of 2^-24.
  const uint m = (bits & (hidden_bit - 1u)) | hidden_bit;
  const int shift = 126 - int(bits >> 23);
  const uint kept = m >> shift, cut = m - (kept << shift), middle = 1u << (shift - 1);
  const uint whole = kept + (cut > middle || (cut == middle && (kept & 1u) == 1u) ? 1u : 0u);
  if (whole == 0u)
    return uintBitsToFloat(sign);
  const int up = 23 - findMSB(whole);
  return uintBitsToFloat(sign | (uint(126 - up) << 23) | ((whole << up) & (hidden_bit - 1u)));
}

/// √a, correctly rounded to nearest.
float exact_root(float a) {
  const uint bits = floatBitsToUint(a);
  if (bits - 1u >= infinite_bits - 1u) // zero, infinity, NaN or negative
    return (bits & ~sign_bit) == 0u || bits == infinite_bits ? a : uintBitsToFloat(nan_bits);
  const binary_parts x = parts_of(bits);
  const uint odd = uint(x.e + 1) & 1u; // one bit more makes the exponent even
  const float near = GUESSED_ROOT(uintBitsToFloat(x.m + ((126u + odd) << 23)));
  uint q = floatBitsToUint(max(near, 1.0f)) - (126u << 23) - 7u;
  uint r = (x.m << (23u + odd)) - q * q;
  UNROLLED for (int step = 3; step >= 0; --step) {
    const uint part = ((2u * q) << step) + (1u << (2 * step)); // (q + 2^step)² − q²
    if (r >= part) {
      r -= part;
      q += 1u << step;
    }
  }
  return uintBitsToFloat((uint((x.e + 127 - int(odd)) / 2) << 23) + q - hidden_bit + (r > q ? 1u : 0u));
}

#endif

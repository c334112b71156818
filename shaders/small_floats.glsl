// Floats of 16 and 8 bits as float32 and back, in integers alone: whatever a device does with conversions and subnormal
// numbers.
#ifndef TROUPE_SMALL_FLOATS
#define TROUPE_SMALL_FLOATS

#include "exact_arithmetic.glsl"
#include "parameters/element_type.h"

/// Returns m · 2^e for m < 2^24, exactly, with `sign` as its highest bit; the value must be a normal float32.
float scaled(uint sign, uint m, int e) {
  if (m == 0u)
    return uintBitsToFloat(sign);
  const int top = findMSB(m);
  return uintBitsToFloat(sign | (uint(e + top + 127) << 23) | ((m << (23 - top)) & (hidden_bit - 1u)));
}

/// A float of `mantissa` bits after the point, whose exponents are stored with `bias` added.
float decoded(uint bits, uint sign, int mantissa, int bias) {
  const uint exponent = bits >> mantissa, fraction = bits & ((1u << mantissa) - 1u);
  return scaled(sign, exponent != 0u ? fraction | (1u << mantissa) : fraction, max(int(exponent), 1) - bias - mantissa);
}

float float_of_half(uint bits) {
  const uint sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  return magnitude >= 0x7c00u ? uintBitsToFloat(sign | infinite_bits | ((magnitude & 0x3ffu) << 13))
      : decoded(magnitude, sign, 10, 15);
}

/// How a float8 type reads its bits, as in src/tensor/float8.cpp.
struct float8_format {
  int mantissa, bias;
  uint largest; // bits of the largest finite value
  uint nan;     // bits of a NaN
  bool infinite, unsigned_zero;
};

float8_format float8_of(uint type) {
  switch (type) {
    case type_e4m3fn: return float8_format(3, 7, 0x7eu, 0x7fu, false, false);
    case type_e4m3fnuz: return float8_format(3, 8, 0x7fu, 0x80u, false, true);
    case type_e5m2: return float8_format(2, 15, 0x7bu, 0x7fu, true, false);
    default: return float8_format(2, 16, 0x7fu, 0x80u, false, true);
  }
}

float float_of_float8(uint type, uint bits) {
  const float8_format f = float8_of(type);
  const uint sign = (bits & 0x80u) << 24, magnitude = bits & 0x7fu;
  if (f.unsigned_zero ? bits == f.nan : magnitude > f.largest + (f.infinite ? 1u : 0u))
    return uintBitsToFloat(nan_bits);
  return magnitude > f.largest ? uintBitsToFloat(sign | infinite_bits) : decoded(magnitude, sign, f.mantissa, f.bias);
}

/// The bits of a magnitude (a finite float32's) in units of a float's last place, rounded, halves to even: from 0
/// upwards as consecutive floats are; `beyond` if it is far out of range.
uint encoded_magnitude(uint magnitude, int mantissa, int bias, uint beyond) {
  if (magnitude < hidden_bit)
    return 0u; // a subnormal float32 is less than half of the least float16 and float8
  const int exponent = int(magnitude >> 23) - 127, lowest = 1 - bias;
  if (exponent > 15 + bias)
    return beyond;
  const uint m = (magnitude & (hidden_bit - 1u)) | hidden_bit;
  const int cut = 23 - mantissa + max(lowest - exponent, 0);
  if (cut > 25)
    return 0u;
  const uint kept = m >> cut, rest = m - (kept << cut), middle = 1u << (cut - 1);
  const uint units = kept + (rest > middle || (rest == middle && (kept & 1u) == 1u) ? 1u : 0u);
  return units + (uint(max(exponent - lowest, 0)) << mantissa);
}

uint half_of_float(float x) {
  const uint bits = floatBitsToUint(x), sign = (bits >> 16) & 0x8000u, magnitude = bits & ~sign_bit;
  if (magnitude > infinite_bits)
    return sign | 0x7e00u;
  return sign | (magnitude == infinite_bits ? 0x7c00u : min(encoded_magnitude(magnitude, 10, 15, 0x7c00u), 0x7c00u));
}

uint bfloat_of_float(float x) {
  const uint bits = floatBitsToUint(x);
  if ((bits & ~sign_bit) > infinite_bits)
    return (bits >> 16) | 0x40u;
  return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

uint float8_of_float(uint type, float x, bool saturates) {
  const float8_format f = float8_of(type);
  const uint bits = floatBitsToUint(x), sign = (bits >> 24) & 0x80u, magnitude = bits & ~sign_bit;
  if (magnitude > infinite_bits)
    return f.unsigned_zero ? f.nan : f.nan | sign;
  const uint found = magnitude == infinite_bits ? 1024u : encoded_magnitude(magnitude, f.mantissa, f.bias, 1024u);
  if (found == 0u)
    return f.unsigned_zero ? 0u : sign;
  if (found <= f.largest)
    return found | sign;
  if (saturates)
    return f.largest | sign;
  return f.infinite ? (f.largest + 1u) | sign : (f.unsigned_zero ? f.nan : f.nan | sign);
}

#endif

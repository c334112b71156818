#version 450
// Integer functions of one to three operands that broadcast together. Overflow wraps, division by zero gives 0.
// Constants: 0 see broadcast.glsl; 1 the function (scalar_codes.h); 2 the operands.
// Variants: i32 i64 u32 u64 i16 u16 i8 u8
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "broadcast.glsl"
#include "scalar.glsl"
#if defined(TROUPE_i32) || defined(TROUPE_i64) || defined(TROUPE_i16) || defined(TROUPE_i8)
#define SIGNED
#endif
#if defined(TROUPE_i64) || defined(TROUPE_u64)
#define BITS 64u
#elif defined(TROUPE_i16) || defined(TROUPE_u16)
#define BITS 16u
#elif defined(TROUPE_i8) || defined(TROUPE_u8)
#define BITS 8u
#else
#define BITS 32u
#endif

layout(constant_id = 1) const uint code = 0u;
layout(constant_id = 2) const uint operands = 1u;

layout(set = 0, binding = 1, std430) readonly buffer operand0 { T x0[]; };
layout(set = 0, binding = 2, std430) readonly buffer operand1 { T x1[]; };
layout(set = 0, binding = 3, std430) readonly buffer operand2 { T x2[]; };
layout(set = 0, binding = 4, std430) writeonly buffer target { T y[]; };

bool is_negative(A x) {
#ifdef SIGNED
  return x < A(0);
#else
  return false;
#endif
}

/// Truncated. Divisors that processors trap at are never divided by.
A quotient(A a, A b) {
#ifdef SIGNED
  const A q = a / (b == A(0) || b == A(-1) ? A(1) : b);
  return b == A(0) ? A(0) : (b == A(-1) ? A(0) - a : q);
#else
  const A q = a / (b == A(0) ? A(1) : b);
  return b == A(0) ? A(0) : q;
#endif
}

/// With the sign of a.
A remainder(A a, A b) {
  return b == A(0) ? A(0) : a - quotient(a, b) * b;
}

/// With the sign of b.
A modulo(A a, A b) {
  const A r = remainder(a, b);
  return r != A(0) && is_negative(r) != is_negative(b) ? r + b : r;
}

A shifted(A a, A b, bool left) {
  if (is_negative(b) || b >= A(BITS))
    return A(0);
  return left ? a << uint(b) : a >> uint(b);
}

/// a^b by squaring; a negative exponent leaves 1, −1 and, for other bases, 0. Exponents of 64 bits count as signed.
A raised(A a, A b) {
#ifdef TROUPE_u64
  const bool negative = (b >> 63u) != A(0);
#else
  const bool negative = is_negative(b);
#endif
  if (negative)
    return a == A(1) || (is_negative(a) && a == A(0) - A(1) && (b & A(1)) == A(0)) ? A(1)
                                                                                   : (is_negative(a) && a == A(0) - A(1)
                                                                                          ? a : A(0));
  A power = A(1);
  for (; b != A(0); b >>= 1) {
    power = (b & A(1)) != A(0) ? power * a : power;
    a *= a;
  }
  return power;
}

A smaller(A a, A b) { return a < b ? a : b; }
A larger(A a, A b) { return a > b ? a : b; }

A apply(A a, A b, A c) {
  switch (code) {
    case scalar_add: return a + b;
    case scalar_subtract: return a - b;
    case scalar_multiply: return a * b;
    case scalar_divide: return quotient(a, b);
    case scalar_pow: return raised(a, b);
    case scalar_modulo: return modulo(a, b);
    case scalar_truncated_modulo: return remainder(a, b);
    case scalar_minimum: return operands < 3u ? smaller(a, b) : smaller(smaller(a, b), c);
    case scalar_maximum: return operands < 3u ? larger(a, b) : larger(larger(a, b), c);
    case scalar_clip: return smaller(larger(a, b), c);
    case scalar_negate: return A(0) - a;
    case scalar_abs: return is_negative(a) ? A(0) - a : a;
    case scalar_sign: return a == A(0) ? a : (is_negative(a) ? A(0) - A(1) : A(1));
    case scalar_relu: return is_negative(a) ? A(0) : a;
    case scalar_leaky_relu: return is_negative(a) ? a * b : a;
    case scalar_bits_and: return a & b;
    case scalar_bits_or: return a | b;
    case scalar_bits_xor: return a ^ b;
    case scalar_complement: return ~a;
    case scalar_shift_left: return shifted(a, b, true);
    case scalar_shift_right: return shifted(a, b, false);
    default: return a;
  }
}

void main() {
  const uint first = flat_group() * 256u * elements_each + gl_LocalInvocationID.x;
  [[unroll]] for (uint e = 0u; e < elements_each; ++e) {
    const uint index = first + e * 256u;
    if (index >= count)
      return;
    const A a = A(x0[offset_of(0u, index)]);
    const A b = operands > 1u ? A(x1[offset_of(1u, index)]) : A(0);
    const A c = operands > 2u ? A(x2[offset_of(2u, index)]) : A(0);
    y[index] = T(apply(a, b, c));
  }
}

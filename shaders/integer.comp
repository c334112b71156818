#version 450
// Integer functions of one to three operands that broadcast together. Overflow wraps, division by zero gives 0.
// Constants: 0 see broadcast.glsl; 1 the function (integer_code in src/launch/integer.hpp); 2 the operands.
// Variants: i32 i64 u32 u64 i8 u8
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "broadcast.glsl"
#if defined(TROUPE_i32) || defined(TROUPE_i64) || defined(TROUPE_i8)
#define SIGNED
#endif
#if defined(TROUPE_i64) || defined(TROUPE_u64)
#define BITS 64u
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

A smaller(A a, A b) { return a < b ? a : b; }
A larger(A a, A b) { return a > b ? a : b; }

A apply(A a, A b, A c) {
  switch (code) {
    case 0u: return a + b;
    case 1u: return a - b;
    case 2u: return a * b;
    case 3u: return quotient(a, b);
    case 4u: return modulo(a, b);
    case 5u: return remainder(a, b);
    case 6u: return operands < 3u ? smaller(a, b) : smaller(smaller(a, b), c);
    case 7u: return operands < 3u ? larger(a, b) : larger(larger(a, b), c);
    case 8u: return a & b;
    case 9u: return a | b;
    case 10u: return a ^ b;
    case 11u: return shifted(a, b, true);
    case 12u: return shifted(a, b, false);
    case 13u: return A(0) - a;
    case 14u: return is_negative(a) ? A(0) - a : a;
    case 15u: return a == A(0) ? a : (is_negative(a) ? A(0) - A(1) : A(1));
    case 16u: return ~a;
    case 17u: return larger(a, b);              // Clip without an upper bound
    case 18u: return smaller(a, b);             // Clip without a lower bound
    case 19u: return smaller(larger(a, b), c);  // Clip
    case 20u: return is_negative(a) ? A(0) : a; // Relu
    case 21u: return is_negative(a) ? a * b : a; // PRelu
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

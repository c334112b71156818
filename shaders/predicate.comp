#version 450
// Comparisons, boolean operators and tests for NaN and infinities: results are bytes, 0 or 1. Operands broadcast
// together. Constants: 0 see broadcast.glsl; 1 the predicate; 2 its flags (parameters/predicate.h).
// Variants: f32 f16 f64 i32 i64 u32 u64 i16 u16 i8 u8
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#include "types.glsl"
#include "broadcast.glsl"
#include "parameters/predicate.h"

layout(constant_id = 1) const uint code = 0u;
layout(constant_id = 2) const uint flags = 0u;

layout(set = 0, binding = 1, std430) readonly buffer operand0 { T x0[]; };
layout(set = 0, binding = 2, std430) readonly buffer operand1 { T x1[]; };
layout(set = 0, binding = 3, std430) writeonly buffer target { uint8_t y[]; };

#if defined(TROUPE_f32) || defined(TROUPE_f16)
bool test(A a) {
  const uint magnitude = floatBitsToUint(a) & 0x7fffffffu;
  const bool negative = (floatBitsToUint(a) >> 31) != 0u;
  return code == predicate_is_nan ? magnitude > 0x7f800000u
                             : magnitude == 0x7f800000u
                                 && (flags & (negative ? predicate_negative : predicate_positive)) != 0u;
}
#elif defined(TROUPE_f64)
bool test(A a) {
  const uvec2 words = unpackDouble2x32(a); // the low one first
  const uint high = words.y & 0x7fffffffu;
  const bool negative = (words.y >> 31) != 0u, infinite = high == 0x7ff00000u && words.x == 0u;
  return code == predicate_is_nan ? high >= 0x7ff00000u && !infinite
                                  : infinite && (flags & (negative ? predicate_negative : predicate_positive)) != 0u;
}
#else
bool test(A a) {
  return a == A(0); // Not
}
#endif

bool compare(A a, A b) {
  switch (code) {
    case predicate_equal: return flags != 0u ? (a != A(0)) == (b != A(0)) : a == b;
    case predicate_greater: return a > b;
    case predicate_greater_or_equal: return a >= b;
    case predicate_less: return a < b;
    case predicate_less_or_equal: return a <= b;
    case predicate_both: return a != A(0) && b != A(0);
    case predicate_either: return a != A(0) || b != A(0);
    default: return (a != A(0)) != (b != A(0));
  }
}

void main() {
  const uint first = flat_group() * 256u * elements_each + gl_LocalInvocationID.x;
  [[unroll]] for (uint e = 0u; e < elements_each; ++e) {
    const uint index = first + e * 256u;
    if (index >= count)
      return;
    const A a = A(x0[offset_of(0u, index)]);
    const bool result = code >= predicate_negation ? test(a) : compare(a, A(x1[offset_of(1u, index)]));
    y[index] = uint8_t(result ? 1u : 0u);
  }
}

#version 450
// Comparisons, boolean operators and tests for NaN and infinities: results are bytes, 0 or 1. Operands broadcast together.
// Constants: 0 see broadcast.glsl; 1 the predicate (predicate_code in src/launch/logic.cpp); 2 whether operands are
// booleans (any byte but 0 is true) in Equal; bit 0 and 1: positive and negative infinities in IsInf.
// Variants: f32 f16 i32 i64 u32 u64 i8 u8
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#include "types.glsl"
#include "broadcast.glsl"

layout(constant_id = 1) const uint code = 0u;
layout(constant_id = 2) const uint flags = 0u;
const uint code_not = 8u, code_is_nan = 9u, code_is_inf = 10u;

layout(set = 0, binding = 1, std430) readonly buffer operand0 { T x0[]; };
layout(set = 0, binding = 2, std430) readonly buffer operand1 { T x1[]; };
layout(set = 0, binding = 3, std430) writeonly buffer target { uint8_t y[]; };

#if defined(TROUPE_f32) || defined(TROUPE_f16)
bool test(A a) {
  const uint magnitude = floatBitsToUint(a) & 0x7fffffffu;
  const bool negative = (floatBitsToUint(a) >> 31) != 0u;
  return code == code_is_nan ? magnitude > 0x7f800000u
                             : magnitude == 0x7f800000u && (flags >> (negative ? 1u : 0u) & 1u) != 0u;
}
#else
bool test(A a) {
  return a == A(0); // Not
}
#endif

bool compare(A a, A b) {
  switch (code) {
    case 0u: return flags != 0u ? (a != A(0)) == (b != A(0)) : a == b;
    case 1u: return a > b;
    case 2u: return a >= b;
    case 3u: return a < b;
    case 4u: return a <= b;
    case 5u: return a != A(0) && b != A(0);
    case 6u: return a != A(0) || b != A(0);
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
    const bool result = code >= code_not ? test(a) : compare(a, A(x1[offset_of(1u, index)]));
    y[index] = uint8_t(result ? 1u : 0u);
  }
}

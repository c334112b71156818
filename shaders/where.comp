#version 450
// Where: y = condition ? a : b, operands broadcast together. Conditions are bytes, any but 0 is true.
// Variants: w8 w16 w32 w64
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#include "types.glsl"
#include "broadcast.glsl"

layout(set = 0, binding = 1, std430) readonly buffer operand0 { uint8_t condition[]; };
layout(set = 0, binding = 2, std430) readonly buffer operand1 { T a[]; };
layout(set = 0, binding = 3, std430) readonly buffer operand2 { T b[]; };
layout(set = 0, binding = 4, std430) writeonly buffer target { T y[]; };

void main() {
  const uint first = flat_group() * 256u * elements_each + gl_LocalInvocationID.x;
  [[unroll]] for (uint e = 0u; e < elements_each; ++e) {
    const uint index = first + e * 256u;
    if (index >= count)
      return;
    if (uint(condition[offset_of(0u, index)]) != 0u)
      y[index] = a[offset_of(1u, index)];
    else
      y[index] = b[offset_of(2u, index)];
  }
}

#version 450
// Range: start + i delta. Integers wrap around; 64-bit ones are computed in two words.
// Variants: f32 f16 w32 w64
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "parameters/range.h"

layout(local_size_x = 256) in;

layout(set = 0, binding = 1, std430) writeonly buffer target { T to[]; };

void main() {
  const uint index = flat_group() * 256u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
#if defined(TROUPE_w64)
  uint high, low, carry;
  umulExtended(index, delta_low, high, low);
  low = uaddCarry(low, start_low, carry);
  to[index] = uvec2(low, high + index * delta_high + start_high + carry);
#elif defined(TROUPE_w32)
  to[index] = start_low + index * delta_low;
#else
  precise float product = float(index) * uintBitsToFloat(delta_low);
  precise float sum = uintBitsToFloat(start_low) + product;
  to[index] = T(sum);
#endif
}

#version 450
// troupe.ToFloat16: float32 → float16, finite values stay finite. One invocation an element.
// Variants: f16
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "parameters/element_count.h"

layout(local_size_x = 256) in;

layout(set = 0, binding = 1, std430) readonly buffer source { float x[]; };
layout(set = 0, binding = 2, std430) writeonly buffer target { T y[]; };

void main() {
  const uint index = flat_group() * 256u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  const float v = x[index];
  y[index] = T(abs(v) < infinity ? clamp(v, -65504.0, 65504.0) : v);
}

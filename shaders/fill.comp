#version 450
// Fills a matrix with one value, or only its diagonal k, with zero elsewhere: ConstantOfShape, EyeLike. One invocation
// an element.
// Variants: w8 w16 w32 w64
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "parameters/fill.h"

layout(local_size_x = 256) in;

layout(set = 0, binding = 1, std430) writeonly buffer target { T to[]; };

void main() {
  const uint index = flat_group() * 256u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  bool on = true;
  if (columns != 0u) {
    const uint row = index / columns;
    on = int(index - row * columns) - int(row) == k;
  }
#if defined(TROUPE_w64)
  to[index] = on ? uvec2(low, high) : uvec2(0u);
#else
  to[index] = T(on ? low : 0u);
#endif
}

#version 450
// MaxUnpool: every element goes where its index says, into an output of zeros; an index outside of what they count goes
// nowhere. One invocation an element.
// Variants: w16 w32 w64
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "parameters/max_unpool.h"

layout(local_size_x = 256) in;

layout(set = 0, binding = 1, std430) readonly buffer source { T x[]; };
layout(set = 0, binding = 2, std430) readonly buffer places { uvec2 indices[]; };
layout(set = 0, binding = 3, std430) writeonly buffer target { T y[]; };

void main() {
  const uint index = flat_group() * 256u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  const uvec2 place = indices[index];
  if (place.y != 0u || place.x >= counted)
    return;
  uint rest = place.x, at = 0u;
  for (uint i = 0u; i < rank; ++i) {
    const uint next = rest / axes[i].x;
    at += (rest - next * axes[i].x) * axes[i].y;
    rest = next;
  }
  y[at] = x[index];
}

#version 450
// GatherElements: every element picks its index along one axis: y[i, j, k] = x[i, indices[i, j, k], k]; one invocation
// an element. Indices as in gather.comp; the axes are those of the indices, innermost first.
// Variants: w8 w16 w32 w64
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "indices.glsl"
#include "parameters/gather_elements.h"

layout(local_size_x = 256) in;

layout(set = 0, binding = 1, std430) readonly buffer source { T from[]; };
layout(set = 0, binding = 2, std430) readonly buffer picked { uint indices[]; };
layout(set = 0, binding = 3, std430) writeonly buffer target { T to[]; };

void main() {
  const uint index = flat_group() * 256u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  uint rest = index, f = clamp_index(indices[index * index_words], bound) * step;
  for (uint i = 0u; i < rank; ++i) {
    const uint next = rest / axes[i].x;
    f += (rest - next * axes[i].x) * axes[i].y;
    rest = next;
  }
  to[index] = from[f];
}

#version 450
// Copies elements between two strided arrays: Transpose, Slice, Expand, Tile, Split, Reorder. One invocation a word;
// axes are innermost first. Steps may be negative: arithmetic modulo 2^32 gives the right place all the same.
// Variants: w8 w16 w32 w64 w128
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "parameters/strided_copy.h"

layout(local_size_x = 256) in;

layout(set = 0, binding = 1, std430) readonly buffer source { T from[]; };
layout(set = 0, binding = 2, std430) writeonly buffer target { T to[]; };

void main() {
  const uint index = flat_group() * 256u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  uint rest = index, f = from_base, t = to_base;
  const uint last = max(rank, 1u) - 1u;
  for (uint i = 0u; i < last; ++i) {
    const uint next = rest / axes[i].x, at = rest - next * axes[i].x;
    f += at * axes[i].y;
    t += at * axes[i].z;
    rest = next;
  }
  to[t + rest * axes[last].z] = from[f + rest * axes[last].y]; // a division less: what is left is along the last axis
}

#version 450
// Copies elements between two strided arrays: Transpose, Slice, Expand, Tile, Concat, Split, Reorder. One invocation an
// element; axes are innermost first.
// Variants: w8 w16 w32 w64
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"

layout(local_size_x = 256) in;

layout(set = 0, binding = 0, std140) uniform parameters {
  uint count;
  uint rank;
  int from_base;
  int to_base;
  ivec4 axes[8]; // size, step in from, step in to
};
layout(set = 0, binding = 1, std430) readonly buffer source { T from[]; };
layout(set = 0, binding = 2, std430) writeonly buffer target { T to[]; };

void main() {
  const uint index = flat_group() * 256u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  uint rest = index;
  int f = from_base, t = to_base;
  for (uint i = 0u; i < rank; ++i) {
    const uint size = uint(axes[i].x);
    const uint next = rest / size;
    const int at = int(rest - next * size);
    f += at * axes[i].y;
    t += at * axes[i].z;
    rest = next;
  }
  to[t] = from[f];
}

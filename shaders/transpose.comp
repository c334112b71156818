#version 450
// Transposes matrices through shared memory, 32 × 32 elements a group, so that reads and writes are both dense. A
// matrix has lines (dense in the source) and rows (dense in the target); further axes count the matrices, innermost
// first.
// Variants: w8 w16 w32 w64
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "parameters/transpose.h"

layout(local_size_x = 32, local_size_y = 8) in;

layout(set = 0, binding = 1, std430) readonly buffer source { T from[]; };
layout(set = 0, binding = 2, std430) writeonly buffer target { T to[]; };

#if defined(TROUPE_w64)
#define S uvec2
#else
#define S uint
#endif
// One column more than needed: the columns of a tile are in different banks.
shared S tile[32][33];

void main() {
  const uint group = flat_group();
  if (group >= groups)
    return;
  uint rest = group / line_tiles;
  const uint line_first = (group - rest * line_tiles) * 32u;
  const uint matrix = rest / row_tiles;
  const uint row_first = (rest - matrix * row_tiles) * 32u;
  uint f = from_base, t = to_base;
  rest = matrix;
  for (uint i = 0u; i < rank; ++i) {
    const uint next = rest / axes[i].x, at = rest - next * axes[i].x;
    f += at * axes[i].y;
    t += at * axes[i].z;
    rest = next;
  }
  const uint x = gl_LocalInvocationID.x, y = gl_LocalInvocationID.y;
  [[unroll]] for (uint k = 0u; k < 32u; k += 8u) {
    const uint l = line_first + x, r = row_first + y + k;
    if (l < line && r < row)
      tile[y + k][x] = S(from[f + l + r * row_from]);
  }
  barrier();
  [[unroll]] for (uint k = 0u; k < 32u; k += 8u) {
    const uint l = line_first + y + k, r = row_first + x;
    if (l < line && r < row)
      to[t + r + l * line_to] = T(tile[x][y + k]);
  }
}

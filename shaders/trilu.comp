#version 450
// Trilu: what is on and above (upper) or below diagonal k of each matrix, zero elsewhere; one invocation an element.
// Variants: w8 w16 w32 w64
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "parameters/trilu.h"

layout(local_size_x = 256) in;

layout(set = 0, binding = 1, std430) readonly buffer source { T from[]; };
layout(set = 0, binding = 2, std430) readonly buffer diagonal { uint k[]; };
layout(set = 0, binding = 3, std430) writeonly buffer target { T to[]; };

/// k between one diagonal below and one above all elements.
int clamped_k() {
  if (k_words == 0u)
    return 0;
  int value = int(k[0]);
  if (k_words == 2u && int(k[1]) != value >> 31)
    value = int(k[1]) < 0 ? -0x7fffffff : 0x7fffffff;
  return clamp(value, -int(rows) - 1, int(columns) + 1);
}

void main() {
  const uint index = flat_group() * 256u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  const uint line = index / columns;
  const int column = int(index - line * columns), split = int(line % rows) + clamped_k();
  const bool keep = upper != 0u ? column >= split : column <= split;
  to[index] = keep ? from[index] : T(0u);
}

#version 450
// Pads (or crops) a tensor; one invocation an element of the output, axes innermost first. What is outside the input is
// the fill value, or the element that the mode leads to.
// Variants: w8 w16 w32 w64
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "parameters/pad.h"

layout(local_size_x = 256) in;

layout(set = 0, binding = 1, std430) readonly buffer source { T from[]; };
layout(set = 0, binding = 2, std430) readonly buffer given { T fill[]; };
layout(set = 0, binding = 3, std430) writeonly buffer target { T to[]; };

#if defined(TROUPE_w64)
T stated_fill() { return uvec2(fill_low, fill_high); }
#else
T stated_fill() { return T(fill_low); }
#endif

int modulo(int a, int b) {
  const int r = a - a / b * b; // % is undefined for negative operands
  return r < 0 ? r + b : r;
}

/// The element of a dim `d` > 0 that position `j` outside of it shows; -1 for the fill value.
int source_of(int j, int d) {
  switch (mode) {
    case pad_constant: return -1;
    case pad_edge: return j < 0 ? 0 : d - 1;
    case pad_wrap: return modulo(j, d);
  }
  if (d == 1)
    return 0;
  const int k = modulo(j, 2 * (d - 1));
  return k < d ? k : 2 * (d - 1) - k;
}

void main() {
  const uint index = flat_group() * 256u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  uint rest = index, f = base;
  bool filled = false;
  for (uint i = 0u; i < rank; ++i) {
    const uint size = uint(axes[i].x), next = rest / size;
    int at = int(rest - next * size) - axes[i].y;
    if (at < 0 || at >= axes[i].z)
      at = source_of(at, axes[i].z);
    filled = filled || at < 0;
    f += uint(at) * uint(axes[i].w);
    rest = next;
  }
  if (!filled)
    to[index] = from[f];
  else if (fill_given != 0u)
    to[index] = fill[0];
  else
    to[index] = stated_fill();
}

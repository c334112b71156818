#version 450
// Line by line, puts up to 8 inputs one after the other into their place in the output's lines; one invocation a word.
// Inputs that are absent are bound to the last one.
// Variants: w8 w16 w32 w64 w128
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "parameters/concat.h"

layout(local_size_x = 256) in;

layout(set = 0, binding = 1, std430) readonly buffer input0 { T x0[]; };
layout(set = 0, binding = 2, std430) readonly buffer input1 { T x1[]; };
layout(set = 0, binding = 3, std430) readonly buffer input2 { T x2[]; };
layout(set = 0, binding = 4, std430) readonly buffer input3 { T x3[]; };
layout(set = 0, binding = 5, std430) readonly buffer input4 { T x4[]; };
layout(set = 0, binding = 6, std430) readonly buffer input5 { T x5[]; };
layout(set = 0, binding = 7, std430) readonly buffer input6 { T x6[]; };
layout(set = 0, binding = 8, std430) readonly buffer input7 { T x7[]; };
layout(set = 0, binding = 9, std430) writeonly buffer target { T y[]; };

void main() {
  const uint index = flat_group() * 256u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  const uint row = index / line, at = index - row * line;
  uint part = 0u, start = 0u;
  [[unroll]] for (uint i = 0u; i < 7u; ++i) {
    const uint end = ends[i >> 2u][i & 3u];
    if (at >= end) {
      part = i + 1u;
      start = end;
    }
  }
  const uint from = row * (ends[part >> 2u][part & 3u] - start) + at - start, to = row * width + begin + at;
  switch (part) {
    case 0u: y[to] = x0[from]; break;
    case 1u: y[to] = x1[from]; break;
    case 2u: y[to] = x2[from]; break;
    case 3u: y[to] = x3[from]; break;
    case 4u: y[to] = x4[from]; break;
    case 5u: y[to] = x5[from]; break;
    case 6u: y[to] = x6[from]; break;
    default: y[to] = x7[from]; break;
  }
}

#version 450
// Gather along one axis: y[o, p, r] = x[o, indices[p], r] in words that a run r holds together; one invocation a word.
// Indices are the low words of integers, negative ones count from the end, and the ones out of range are clamped. A
// launch reads the words [first, first + size) of x and leaves out what is elsewhere: x may be longer than a binding.
// Variants: w8 w16 w32 w64 w128
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "indices.glsl"
#include "parameters/gather.h"

layout(local_size_x = 256) in;

layout(set = 0, binding = 1, std430) readonly buffer source { T from[]; };
layout(set = 0, binding = 2, std430) readonly buffer picked { uint indices[]; };
layout(set = 0, binding = 3, std430) writeonly buffer target { T to[]; };

void main() {
  const uint index = flat_group() * 256u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  const uint row = index / run, outer = row / picks;
  const uint at = clamp_index(indices[(row - outer * picks) * index_words], bound);
  const uint f = (outer * bound + at) * run + index - row * run;
  if (f >= first && f - first < size)
    to[index] = from[f - first];
}

#version 450
// ReverseSequence: the first lengths[b] elements along the time axis in reverse order, per batch b; one invocation an
// element. Lengths are the low words of integers, clamped to the dim.
// Variants: w8 w16 w32 w64
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "parameters/reverse_sequence.h"

layout(local_size_x = 256) in;

layout(set = 0, binding = 1, std430) readonly buffer source { T from[]; };
layout(set = 0, binding = 2, std430) readonly buffer stated { uint lengths[]; };
layout(set = 0, binding = 3, std430) writeonly buffer target { T to[]; };

void main() {
  const uint index = flat_group() * 256u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  const uint t = index / time_step % times, b = index / batch_step % batches;
  const uint length = uint(clamp(int(lengths[b * length_words]), 0, int(times)));
  to[index] = from[t < length ? index + (length - 1u - 2u * t) * time_step : index];
}

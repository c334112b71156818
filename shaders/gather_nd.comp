#version 450
// GatherND: tuples of indices pick runs of elements; one invocation a word of a run. Indices as in gather.comp.
// Variants: w8 w16 w32 w64 w128
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "indices.glsl"
#include "parameters/gather_nd.h"

layout(local_size_x = 256) in;

layout(set = 0, binding = 1, std430) readonly buffer source { T from[]; };
layout(set = 0, binding = 2, std430) readonly buffer picked { uint indices[]; };
layout(set = 0, binding = 3, std430) writeonly buffer target { T to[]; };

void main() {
  const uint index = flat_group() * 256u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  const uint at = index / run;
  uint f = at / batch_tuples * batch_step + index - at * run;
  for (uint i = 0u; i < tuple; ++i)
    f += clamp_index(indices[(at * tuple + i) * index_words], axes[i].x) * axes[i].y;
  to[index] = from[f];
}

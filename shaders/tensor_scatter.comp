#version 450
// TensorScatter: a cache in which update b begins at index starts[b] of one axis, circular or not; one invocation a
// word. Starts are the low words of integers, clamped so that nothing leaves the cache. With clear_after what is after
// a linear update is 0.
// Variants: w8 w16 w32 w64 w128
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "indices.glsl"
#include "parameters/tensor_scatter.h"

layout(local_size_x = 256) in;

layout(set = 0, binding = 1, std430) readonly buffer source { T cache[]; };
layout(set = 0, binding = 2, std430) readonly buffer updating { T updates[]; };
layout(set = 0, binding = 3, std430) readonly buffer stated { uint starts[]; };
layout(set = 0, binding = 4, std430) writeonly buffer target { T to[]; };

void main() {
  const uint index = flat_group() * 256u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  uint start = 0u;
  if (start_words != 0u)
    start = clamp_index(starts[index / batch_step * start_words], circular != 0u ? size : size - update_size + 1u);
  const uint row = index / inner, line = row / size, at = row - line * size;
  const uint i = at >= start ? at - start : at + size - start;
  const bool updated = i < update_size && (circular != 0u || at >= start);
  if (updated)
    to[index] = updates[(line * update_size + i) * inner + index - row * inner];
  else if (clear_after != 0u && circular == 0u && at >= start)
    to[index] = T(0);
  else
    to[index] = cache[index];
}

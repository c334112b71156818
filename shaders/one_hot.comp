#version 450
// OneHot: y[o, d, i] = values[indices[o, i] is d]; one invocation an element. Negative indices count from the end;
// those out of range are nowhere.
// Variants: w8 w16 w32 w64
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "parameters/one_hot.h"

layout(local_size_x = 256) in;

layout(set = 0, binding = 1, std430) readonly buffer picked { uint indices[]; };
layout(set = 0, binding = 2, std430) readonly buffer stated { T values[]; };
layout(set = 0, binding = 3, std430) writeonly buffer target { T to[]; };

/// The index at position `at`, counted from the front; -1 where it is out of range.
int index_at(uint at) {
  if (kind == one_hot_float32) {
    float x = uintBitsToFloat(indices[at]);
    if (x < 0.0)
      x += float(depth);
    return x >= 0.0 && x < float(depth) ? int(x) : -1;
  }
  const int low = int(indices[at * kind]);
  if (kind == one_hot_int64 && int(indices[at * 2u + 1u]) != low >> 31)
    return -1;
  return low < 0 ? low + int(depth) : low;
}

void main() {
  const uint index = flat_group() * 256u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  const uint line = index / inner, outer = line / depth;
  const bool hot = index_at(outer * inner + index - line * inner) == int(line - outer * depth);
  to[index] = values[hot ? 1 : 0];
}

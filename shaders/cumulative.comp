#version 450
// CumSum along an axis. A workgroup has LANES rows side by side and THREADS / LANES segments of each: segments add up their elements,
// every segment adds those before it, and then runs along its elements once more.
// Variants: f32 f16 i32 i64
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "parameters/row_extent.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 256;
layout(constant_id = 1) const uint LANES = 1;
layout(constant_id = 2) const bool EXCLUSIVE = false;
layout(constant_id = 3) const bool REVERSE = false;

layout(set = 0, binding = 1, std430) readonly buffer source { T x[]; };
layout(set = 0, binding = 2, std430) writeonly buffer target { T y[]; };

shared A segment_sums[THREADS];

void main() {
  const uint id = gl_LocalInvocationID.x, segments = THREADS / LANES, segment = id / LANES;
  const uint row = flat_group() * LANES + id % LANES;
  const uint each = (size + segments - 1) / segments;
  const uint begin = min(size, segment * each), end = row < rows ? min(size, begin + each) : begin;
  const uint start = row / inner * size * inner + row % inner;
  A sum = A(0);
  for (uint i = begin; i < end; ++i)
    sum += A(x[start + (REVERSE ? size - 1 - i : i) * inner]);
  segment_sums[id] = sum;
  barrier();
  sum = A(0);
  for (uint s = 0; s < segment; ++s)
    sum += segment_sums[s * LANES + id % LANES];
  for (uint i = begin; i < end; ++i) {
    const uint at = start + (REVERSE ? size - 1 - i : i) * inner;
    const A next = sum + A(x[at]);
    y[at] = T(EXCLUSIVE ? sum : next);
    sum = next;
  }
}

#version 450
// CumSum and CumProd along an axis. A workgroup has LANES rows side by side and THREADS / LANES segments of each:
// segments combine their elements, every segment those before it, and then it runs along its elements once more.
// Variants: f32 f16 f64 i32 i64 u32 u64 i16 u16 i8 u8
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "parameters/row_extent.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 256;
layout(constant_id = 1) const uint LANES = 1;
layout(constant_id = 2) const bool EXCLUSIVE = false;
layout(constant_id = 3) const bool REVERSE = false;
layout(constant_id = 4) const bool PRODUCT = false;

layout(set = 0, binding = 1, std430) readonly buffer source { T x[]; };
layout(set = 0, binding = 2, std430) writeonly buffer target { T y[]; };

shared A segment_sums[THREADS];

A combine(A a, A b) { return PRODUCT ? a * b : a + b; }

void main() {
  const uint id = gl_LocalInvocationID.x, segments = THREADS / LANES, segment = id / LANES;
  const uint row = flat_group() * LANES + id % LANES;
  const uint each = (size + segments - 1) / segments;
  const uint begin = min(size, segment * each), end = row < rows ? min(size, begin + each) : begin;
  const uint start = row / inner * size * inner + row % inner;
  const A neutral = A(PRODUCT ? 1 : 0);
  A sum = neutral;
  for (uint i = begin; i < end; ++i)
    sum = combine(sum, A(x[start + (REVERSE ? size - 1 - i : i) * inner]));
  segment_sums[id] = sum;
  barrier();
  sum = neutral;
  for (uint s = 0; s < segment; ++s)
    sum = combine(sum, segment_sums[s * LANES + id % LANES]);
  for (uint i = begin; i < end; ++i) {
    const uint at = start + (REVERSE ? size - 1 - i : i) * inner;
    const A next = combine(sum, A(x[at]));
    y[at] = T(EXCLUSIVE ? sum : next);
    sum = next;
  }
}

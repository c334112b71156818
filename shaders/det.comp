#version 450
// Det by elimination with partial pivoting, in double (src/ops/onnx/det.cpp). A group has a matrix, which it takes
// apart in scratch memory.
// Variants: f32 f16 f64
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "double_math.glsl"
#include "parameters/det.h"

layout(local_size_x = 64) in;

layout(set = 0, binding = 1, std430) readonly buffer source { T x[]; };
layout(set = 0, binding = 2, std430) writeonly buffer target { T y[]; };
layout(set = 0, binding = 3, std430) coherent buffer scratch { double a[]; };

shared uint pivot;

void wait_for_group() {
  memoryBarrierBuffer();
  barrier();
}

/// The row from k on whose element of column k is the largest; a NaN is taken, and stays.
uint pivot_of(uint base, uint k) {
  uint found = k;
  for (uint i = k + 1u; i < n; ++i) {
    const double best = abs(a[base + found * n + k]), other = abs(a[base + i * n + k]);
    if (!exact_isnan(best) && (exact_isnan(other) || other > best))
      found = i;
  }
  return found;
}

void main() {
  const uint matrix = flat_group(), id = gl_LocalInvocationID.x, base = matrix * n * n;
  if (matrix >= count)
    return;
  for (uint i = id; i < n * n; i += 64u)
    a[base + i] = double(x[base + i]);
  wait_for_group();
  double result = 1.0lf;
  for (uint k = 0u; k < n; ++k) {
    if (id == 0u)
      pivot = pivot_of(base, k);
    wait_for_group();
    if (pivot != k)
      for (uint j = id; j < n; j += 64u) {
        const double moved = a[base + k * n + j];
        a[base + k * n + j] = a[base + pivot * n + j];
        a[base + pivot * n + j] = moved;
      }
    result = pivot != k ? -result : result;
    wait_for_group();
    const double diagonal = a[base + k * n + k];
    result *= diagonal;
    if (diagonal == 0.0lf) { // the same for the whole group
      result = 0.0lf;
      break;
    }
    for (uint i = k + 1u + id; i < n; i += 64u) {
      const double factor = a[base + i * n + k] / diagonal;
      for (uint j = k + 1u; j < n; ++j)
        a[base + i * n + j] -= factor * a[base + k * n + j];
    }
    wait_for_group();
  }
  if (id == 0u)
    y[matrix] = T(result);
}

#version 450
// Adds the partial sums of a split matrix product (gemm.glsl) and applies the epilogue. One invocation an element.
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint FLAGS = 0;
layout(constant_id = 1) const uint ACTIVATION = 0;
const uint WIDTH = 1;
#include "split_sum.glsl"

void main() {
  const uint i = flat_group() * 256u + gl_LocalInvocationID.x;
  if (i >= count)
    return;
  const uint row = i / N, column = i - row * N, at = row * out_row + out_first + column;
  store_sums(at, summed(row, column, at));
}

#version 450
// Adds the partial sums of a split matrix product (gemm.glsl) and applies the epilogue. One invocation an element.
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "activation.glsl"
#include "parameters/product.h"
#include "parameters/split_sum.h"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint FLAGS = 0;
layout(constant_id = 1) const uint ACTIVATION = 0;

const bool HAS_BIAS = (FLAGS & product_bias) != 0u;
const bool HAS_RESIDUAL = (FLAGS & product_residual) != 0u;

layout(set = 0, binding = 1, std430) readonly buffer scratch_buffer { float partial[]; };
layout(set = 0, binding = 2, std430) readonly buffer bias_buffer { T bias[]; };
layout(set = 0, binding = 3, std430) readonly buffer residual_buffer { T residual[]; };
layout(set = 0, binding = 4, std430) writeonly buffer output_buffer { T result[]; };

void main() {
  const uint i = flat_group() * 256u + gl_LocalInvocationID.x;
  if (i >= count)
    return;
  const uint row = i / N, column = i - row * N, at = row * out_row + out_first + column;
  float sums[4] = {0.0, 0.0, 0.0, 0.0}; // four, so that loads overlap
  uint s = 0;
  for (; s + 4 <= splits; s += 4)
    [[unroll]] for (uint j = 0; j < 4; ++j)
      sums[j] += partial[(s + j) * count + i];
  for (; s < splits; ++s)
    sums[0] += partial[s * count + i];
  float value = alpha * ((sums[0] + sums[1]) + (sums[2] + sums[3]));
  if (HAS_BIAS)
    value += beta * float(bias[row * bias_row + column * bias_column]);
  if (HAS_RESIDUAL)
    value += float(residual[at]);
  result[at] = T(activate(ACTIVATION, value, act_alpha, act_beta));
}

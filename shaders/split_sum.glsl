// Elements of a split matrix product (gemm.glsl): the sum of its parts with the epilogue, WIDTH neighbouring columns at once. The including kernel
// says WIDTH, 1 or 4; FLAGS and ACTIVATION are its specialisation constants.
#include "activation.glsl"
#include "parameters/product.h"
#include "parameters/split_sum.h"

const bool HAS_BIAS = (FLAGS & product_bias) != 0u;
const bool HAS_RESIDUAL = (FLAGS & product_residual) != 0u;

layout(set = 0, binding = 1, std430) readonly buffer scratch_buffer { float partial[]; };
layout(set = 0, binding = 1, std430) readonly buffer scratch_vectors { vec4 partial4[]; };
layout(set = 0, binding = 2, std430) readonly buffer bias_buffer { T bias[]; };
layout(set = 0, binding = 2, std430) readonly buffer bias_vectors { T4 bias4[]; };
layout(set = 0, binding = 3, std430) readonly buffer residual_buffer { T residual[]; };
layout(set = 0, binding = 3, std430) readonly buffer residual_vectors { T4 residual4[]; };
layout(set = 0, binding = 4, std430) writeonly buffer output_buffer { T result[]; };
layout(set = 0, binding = 4, std430) writeonly buffer output_vectors { T4 result4[]; };

vec4 part_at(uint i) {
  return WIDTH == 4 ? partial4[i / 4] : vec4(partial[i], 0, 0, 0);
}

/// Returns the columns of a row from `column` on; `at`: where they lie in the residual. Only the first WIDTH components count.
vec4 summed(uint row, uint column, uint at) {
  const uint i = row * N + column;
  vec4 sums[4] = {vec4(0), vec4(0), vec4(0), vec4(0)}; // four, so that loads overlap
  uint s = 0;
  for (; s + 4 <= splits; s += 4)
    [[unroll]] for (uint j = 0; j < 4; ++j)
      sums[j] += part_at((s + j) * count + i);
  for (; s < splits; ++s)
    sums[0] += part_at(s * count + i);
  vec4 v = alpha * ((sums[0] + sums[1]) + (sums[2] + sums[3]));
  if (HAS_BIAS) {
    const uint b = row * bias_row + column * bias_column;
    v += beta * (WIDTH == 4 ? vec4(bias4[b / 4]) : vec4(float(bias[b]), 0, 0, 0));
  }
  if (HAS_RESIDUAL)
    v += WIDTH == 4 ? vec4(residual4[at / 4]) : vec4(float(residual[at]), 0, 0, 0);
  [[unroll]] for (uint e = 0; e < WIDTH; ++e)
    v[e] = activate(ACTIVATION, v[e], act_alpha, act_beta);
  return v;
}

void store_sums(uint at, vec4 v) {
  if (WIDTH == 4)
    result4[at / 4] = T4(v);
  else
    result[at] = T(v.x);
}

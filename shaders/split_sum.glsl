// Elements of a split matrix product (gemm.glsl): the sum of its parts with the epilogue, WIDTH neighbouring columns at
// once. The including kernel says WIDTH, 1 or 4; FLAGS and ACTIVATION are its specialisation constants.
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

/// Returns the columns of a row from `column` on; `at`: where they lie in the residual. Only the first WIDTH components
/// count.
vec4 summed(uint row, uint column, uint at) {
  const uint i = row * N + column, b = row * bias_row + column * bias_column;
  // asked for before the parts are waited for, of which eight are on their way at a time
  vec4 own_bias = vec4(0), more = vec4(0);
  if (HAS_BIAS)
    own_bias = WIDTH == 4 ? vec4(bias4[b / 4]) : vec4(float(bias[b]), 0, 0, 0);
  if (HAS_RESIDUAL)
    more = WIDTH == 4 ? vec4(residual4[at / 4]) : vec4(float(residual[at]), 0, 0, 0);
  vec4 sum = vec4(0);
  for (uint s = 0; s < splits; s += 8) {
    vec4 parts[8];
    [[unroll]] for (uint j = 0; j < 8; ++j)
      parts[j] = s + j < splits ? part_at((s + j) * count + i) : vec4(0);
    sum += ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
  }
  vec4 v = alpha * sum;
  if (HAS_BIAS)
    v += beta * own_bias;
  if (HAS_RESIDUAL)
    v += more;
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

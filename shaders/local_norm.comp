#version 450
// MeanVarianceNormalization: y = (x − mean) / (√variance + 1e-9); LpNormalization: y = x / p-norm, 0 if that is 0. A
// team (team.glsl) has the elements that share statistics, over any axes (reduce_walk.glsl).
// Variants: f32 f16 f32_plain f16_plain
#extension GL_GOOGLE_include_directive : require
#include "row_variant.glsl"
#include "types.glsl"
#include "team.glsl"
#include "parameters/local_norm.h"
#include "reduce_walk.glsl"
#include "exact_arithmetic.glsl"

layout(set = 0, binding = 1, std430) readonly buffer source { T x[]; };
layout(set = 0, binding = 2, std430) writeonly buffer target { T y[]; };

layout(constant_id = 4) const uint KIND = local_norm_variance;

const bool centred = KIND == local_norm_variance;

void team_row(uint row, bool present) {
  const uint start = present ? row_at(row) : 0, end = present ? count : 0;
  float mean = 0.0, sum = 0.0;
  if (centred) {
    for (uint k = lane; k < end; k += lanes)
      mean += float(x[start + element_at(k)]);
    mean = exact_quotient(team_sum(mean, 0), float(count));
  }
  for (uint k = lane; k < end; k += lanes) {
    const float v = float(x[start + element_at(k)]) - mean;
    sum += KIND == local_norm_magnitudes ? abs(v) : v * v;
  }
  sum = team_sum(sum, 1);
  const float norm = KIND == local_norm_magnitudes ? sum
                                                   : exact_root(centred ? exact_quotient(sum, float(count)) : sum)
                                                       + (centred ? epsilon : 0.0);
  for (uint k = lane; k < end; k += lanes) {
    const uint at = start + element_at(k);
    y[at] = T(!centred && norm == 0.0 ? 0.0 : exact_quotient(float(x[at]) - mean, norm));
  }
}

void main() {
  run_teams(rows);
}

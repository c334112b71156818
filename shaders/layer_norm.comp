#version 450
// LayerNormalization and RMSNormalization: y = (x − mean) · r · scale + bias with r = 1 / √(variance + epsilon), in two
// passes over the row; RMSNormalization counts the mean as 0. See team.glsl for who computes a row, row.glsl for how it
// is read.
// Variants: f32 f16 f32_plain f16_plain
#extension GL_GOOGLE_include_directive : require
#include "row_variant.glsl"
#include "types.glsl"
#include "team.glsl"
#include "parameters/layer_norm.h"
#include "row.glsl"

layout(set = 0, binding = 3, std430) readonly buffer scales { T scale[]; };
layout(set = 0, binding = 3, std430) readonly buffer scale_vectors { T4 scale4[]; };
layout(set = 0, binding = 4, std430) readonly buffer biases { T bias[]; };
layout(set = 0, binding = 4, std430) readonly buffer bias_vectors { T4 bias4[]; };
layout(set = 0, binding = 5, std430) writeonly buffer means { float row_mean[]; };
layout(set = 0, binding = 6, std430) writeonly buffer factors { float row_factor[]; };

layout(constant_id = 6) const bool CENTRED = true;
layout(constant_id = 7) const bool HAS_BIAS = true;
/// Scale and bias are as long as a row; else they are walked by `axes`.
layout(constant_id = 8) const bool ROW_SCALE = true;
layout(constant_id = 9) const bool HAS_MEAN = false;
layout(constant_id = 10) const bool HAS_FACTOR = false;

/// Elements of scale and bias that belong to an element of the operand.
uvec2 broadcast_at(uint index) {
  uvec2 at = uvec2(0);
  for (uint axis = 0; axis < rank; ++axis) {
    const uint next = index / axes[axis].x;
    at += (index - next * axes[axis].x) * axes[axis].yz;
    index = next;
  }
  return at;
}

/// Whether scale and bias of the vectors that are kept are read ahead, so that no invocation waits for them after the
/// sums.
const bool AHEAD = ROW_SCALE && WIDTH == 4 && ITEMS <= 4;
vec4 kept_scale[ITEMS], kept_bias[ITEMS];

void read_ahead() {
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    const uint k = lane + i * lanes;
    if (k < row_vectors) {
      kept_scale[i] = vec4(scale4[k]);
      kept_bias[i] = HAS_BIAS ? vec4(bias4[k]) : vec4(0);
    }
  }
}

vec4 scaled(uint k, vec4 v) {
  if (ROW_SCALE && WIDTH == 4) {
    v *= vec4(scale4[k]);
    return HAS_BIAS ? v + vec4(bias4[k]) : v;
  }
  EACH_ELEMENT {
    const uint i = k * WIDTH + e;
    const uvec2 at = ROW_SCALE ? uvec2(i) : broadcast_at(row_start + i);
    v[e] *= float(scale[at.x]);
    if (HAS_BIAS)
      v[e] += float(bias[at.y]);
  }
  return v;
}

void team_row(uint row, bool present) {
  open_row(row, present);
  if (AHEAD)
    read_ahead();
  float mean = 0.0, square = 0.0;
  if (CENTRED) {
    EACH_VECTOR(false, EACH_ELEMENT mean += v[e];)
    mean = team_sum(mean, 0) / float(size);
  }
  EACH_VECTOR(false, EACH_ELEMENT square += (v[e] - mean) * (v[e] - mean);)
  const float factor = 1.0 / sqrt(team_sum(square, 1) / float(size) + epsilon);
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    const uint k = lane + i * lanes;
    const vec4 v = (kept[i] - mean) * factor;
    if (k < row_vectors)
      store_vector(k, AHEAD ? v * kept_scale[i] + kept_bias[i] : scaled(k, v));
  }
  for (uint k = lane + ITEMS * lanes; k < row_vectors; k += lanes)
    store_vector(k, scaled(k, (load_vector(k) - mean) * factor));
  if (present && lane == 0) {
    if (HAS_MEAN)
      row_mean[row] = mean;
    if (HAS_FACTOR)
      row_factor[row] = factor;
  }
}

void main() {
  run_teams(rows);
}

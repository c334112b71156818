#version 450
// InstanceNormalization and GroupNormalization: y = (x − mean) / √(variance + epsilon) · scale + bias with the statistics of a
// slice, which is a group of channels of one image. A team (team.glsl) has a part of a slice. If a slice is one part, one launch does
// all; else the first stores mean and squared deviations of every part, and the second merges those of its slice.
// Variants: f32 f16 f32_plain f16_plain
#extension GL_GOOGLE_include_directive : require
#include "row_variant.glsl"
#include "types.glsl"
#include "team.glsl"
#include "parameters/normalization.h"

layout(set = 0, binding = 3, std430) readonly buffer scales { T scale[]; };
layout(set = 0, binding = 4, std430) readonly buffer biases { T bias[]; };
layout(set = 0, binding = 5, std430) buffer statistics { vec2 part_moments[]; }; // mean, sum of squared deviations

layout(constant_id = 6) const uint PHASE = normalization_all;
layout(constant_id = 7) const bool CHANNELS_LAST = false;

uint first_vector = 0; // of the part in its slice
uint in_group;

uint slice_vector_at(uint start, uint index) {
  if (!CHANNELS_LAST)
    return start + index;
  const uint pixel = index / in_group;
  return start + pixel * channels + index - pixel * in_group;
}
#define OWN_ROWS
#define VECTOR_AT(k) slice_vector_at(row_start, (first_vector + (k)) * WIDTH)
#include "row.glsl"

/// Mean and factor of a slice from those of its parts.
vec2 merged_moments(uint slice) {
  float mean = 0.0, square = 0.0;
  const float total = float(vectors * WIDTH);
  for (uint p = 0; p < parts; ++p)
    mean += part_moments[slice * parts + p].x * (float(min(per_part, vectors - p * per_part) * WIDTH) / total);
  for (uint p = 0; p < parts; ++p) {
    const vec2 m = part_moments[slice * parts + p];
    square += m.y + float(min(per_part, vectors - p * per_part) * WIDTH) * (m.x - mean) * (m.x - mean);
  }
  return vec2(mean, 1.0 / sqrt(square / total + epsilon));
}

void normalize(uint group, float mean, float factor) {
  EACH_VECTOR(false, EACH_ELEMENT {
    const uint index = (first_vector + k) * WIDTH + e;
    const uint channel = group * in_group + (CHANNELS_LAST ? index % in_group : index / pixels);
    const uint at = channel / channels_each;
    v[e] = (v[e] - mean) * factor * float(scale[at]) + float(bias[at]);
  }
  store_vector(k, v);)
}

void team_row(uint row, bool present) {
  const uint slice = row / parts, part = row - slice * parts, image = slice / groups, group = slice - image * groups;
  in_group = channels / groups;
  first_vector = part * per_part;
  const uint size = present ? min(per_part, vectors - first_vector) : 0;
  keep_row(image * channels * pixels + group * in_group * (CHANNELS_LAST ? 1 : pixels), size);
  if (PHASE == normalization_result) {
    if (present) {
      const vec2 m = merged_moments(slice);
      normalize(group, m.x, m.y);
    }
    return;
  }
  const float count = float(size * WIDTH);
  float mean = 0.0, square = 0.0;
  EACH_VECTOR(false, EACH_ELEMENT mean += v[e];)
  mean = team_sum(mean, 0) / count;
  EACH_VECTOR(false, EACH_ELEMENT square += (v[e] - mean) * (v[e] - mean);)
  square = team_sum(square, 1);
  if (PHASE == normalization_all)
    normalize(group, mean, 1.0 / sqrt(square / count + epsilon));
  else if (present && lane == 0)
    part_moments[row] = vec2(mean, square);
}

void main() {
  run_teams(rows);
}

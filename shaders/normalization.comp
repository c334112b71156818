#version 450
// InstanceNormalization and GroupNormalization: act((x − mean) / √(variance + epsilon) · scale + bias) with the
// statistics of a slice, which is a group of channels of one image. A team (team.glsl) has a part of a slice. If a
// slice is one part, one launch does all; else the first stores mean and squared deviations of every part, and the
// second merges those of its slice. All means are those of differences from the slice's first element: sums keep their
// digits if the mean is far from 0. Channels-last operands, whose slices are in pieces, are group_norm.comp's wherever
// it can.
// Variants: f32 f16 f32_plain f16_plain
#extension GL_GOOGLE_include_directive : require
#include "row_variant.glsl"
#include "types.glsl"
#include "team.glsl"
#include "activation.glsl"
#include "parameters/normalization.h"

layout(set = 0, binding = 3, std430) readonly buffer scales { T scale[]; };
layout(set = 0, binding = 4, std430) readonly buffer biases { T bias[]; };
layout(set = 0, binding = 5, std430) buffer statistics { vec2 part_moments[]; }; // mean, sum of squared deviations

layout(constant_id = 6) const uint PHASE = normalization_all;
layout(constant_id = 7) const bool CHANNELS_LAST = false;
layout(constant_id = 8) const uint ACTIVATION = scalar_same;

uint first_vector = 0; // of the part in its slice
uint in_group;
float origin; // the slice's first element

uint slice_vector_at(uint start, uint index) {
  if (!CHANNELS_LAST)
    return start + index;
  const uint pixel = index / in_group;
  return start + pixel * channels + index - pixel * in_group;
}
#define OWN_ROWS
#define VECTOR_AT(k) slice_vector_at(row_start, (first_vector + (k)) * WIDTH)
#include "row.glsl"

float elements_of(uint part) {
  return float(min(per_part, vectors - part * per_part) * WIDTH);
}

/// Mean and squared deviations of a slice from those of its parts.
vec2 merged_moments(uint slice, bool present) {
  const uint count = present ? parts : 0;
  float mean = 0.0, square = 0.0;
  for (uint p = lane; p < count; p += lanes)
    mean += part_moments[slice * parts + p].x * (elements_of(p) / float(vectors * WIDTH));
  mean = team_sum(mean, 0);
  for (uint p = lane; p < count; p += lanes) {
    const vec2 m = part_moments[slice * parts + p];
    square += m.y + elements_of(p) * (m.x - mean) * (m.x - mean);
  }
  return vec2(mean, team_sum(square, 1));
}

/// The same from the kept vectors, which have `count` elements.
vec2 kept_moments(float count) {
  float mean = 0.0, square = 0.0;
  EACH_VECTOR(false, EACH_ELEMENT mean += v[e] - origin;)
  mean = team_sum(mean, 0) / count;
  EACH_VECTOR(false, EACH_ELEMENT {
    const float away = v[e] - origin - mean;
    square += away * away;
  })
  return vec2(mean, team_sum(square, 1));
}

void normalize(uint group, vec2 moments) {
  const float factor = 1.0 / sqrt(moments.y / float(vectors * WIDTH) + epsilon);
  EACH_VECTOR(false, EACH_ELEMENT {
    const uint index = (first_vector + k) * WIDTH + e;
    const uint channel = group * in_group + (CHANNELS_LAST ? index % in_group : index / pixels);
    const uint at = channel / channels_each;
    const float normal = (v[e] - origin - moments.x) * factor * float(scale[at]) + float(bias[at]);
    v[e] = activate(ACTIVATION, normal, act_alpha, act_beta);
  }
  store_vector(k, v);)
}

void team_row(uint row, bool present) {
  const uint slice = row / parts, part = row - slice * parts, image = slice / groups, group = slice - image * groups;
  in_group = channels / groups;
  first_vector = part * per_part;
  const uint size = present ? min(per_part, vectors - first_vector) : 0;
  const uint start = image * channels * pixels + group * in_group * (CHANNELS_LAST ? 1 : pixels);
  keep_row(start, size);
  origin = present ? float(x[start]) : 0.0;
  if (PHASE == normalization_result) {
    normalize(group, merged_moments(slice, present));
    return;
  }
  const vec2 moments = kept_moments(float(size * WIDTH));
  if (PHASE == normalization_all)
    normalize(group, moments);
  else if (present && lane == 0)
    part_moments[row] = moments;
}

void main() {
  run_teams(rows);
}

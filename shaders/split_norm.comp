#version 450
// Adds the partial sums of a split matrix product (gemm.glsl), applies the epilogue and normalises the rows:
// LayerNormalization or RMSNormalization, as layer_norm.comp, of the sums before they are rounded. A team (team.glsl)
// keeps its row in registers: what it has of the row is ITEMS vectors.
// Variants: f32 f16 f32_plain f16_plain
#extension GL_GOOGLE_include_directive : require
#include "row_variant.glsl"
#include "types.glsl"
#include "team.glsl"

layout(constant_id = 4) const uint ITEMS = 1;
layout(constant_id = 5) const uint WIDTH = 1;
layout(constant_id = 6) const uint FLAGS = 0;
layout(constant_id = 7) const uint ACTIVATION = 0;
layout(constant_id = 8) const uint NORM = 0;
#include "split_sum.glsl"

const bool CENTRED = (NORM & split_norm_centred) != 0u;
const bool HAS_SHIFT = (NORM & split_norm_shift) != 0u;
const bool WRITES_SUMS = (NORM & split_norm_sums) != 0u;

layout(set = 0, binding = 5, std430) readonly buffer scales { T scale[]; };
layout(set = 0, binding = 5, std430) readonly buffer scale_vectors { T4 scale4[]; };
layout(set = 0, binding = 6, std430) readonly buffer shifts { T shift[]; };
layout(set = 0, binding = 6, std430) readonly buffer shift_vectors { T4 shift4[]; };
layout(set = 0, binding = 7, std430) writeonly buffer target { T y[]; };
layout(set = 0, binding = 7, std430) writeonly buffer target_vectors { T4 y4[]; };

#define EACH_VECTOR [[unroll]] for (uint i = 0, k = lane; i < ITEMS; ++i, k += lanes) if (k < vectors)
#define EACH_ELEMENT [[unroll]] for (uint e = 0; e < WIDTH; ++e)

void team_row(uint row, bool present) {
  const uint vectors = present ? N / WIDTH : 0, start = row * N;
  vec4 kept[ITEMS], scaled[ITEMS], shifted[ITEMS]; // all read before anything is waited for
  EACH_VECTOR {
    scaled[i] = WIDTH == 4 ? vec4(scale4[k]) : vec4(float(scale[k]), 0, 0, 0);
    shifted[i] = !HAS_SHIFT ? vec4(0) : WIDTH == 4 ? vec4(shift4[k]) : vec4(float(shift[k]), 0, 0, 0);
    kept[i] = summed(row, k * WIDTH, start + k * WIDTH);
    if (WRITES_SUMS)
      store_sums(start + k * WIDTH, kept[i]);
  }
  float mean = 0.0, square = 0.0;
  if (CENTRED) {
    EACH_VECTOR EACH_ELEMENT mean += kept[i][e];
    mean = team_sum(mean, 0) / float(N);
  }
  EACH_VECTOR EACH_ELEMENT square += (kept[i][e] - mean) * (kept[i][e] - mean);
  const float factor = 1.0 / sqrt(team_sum(square, 1) / float(N) + epsilon);
  EACH_VECTOR {
    const uint at = start + k * WIDTH;
    const vec4 v = (kept[i] - mean) * factor * scaled[i] + shifted[i];
    if (WIDTH == 4)
      y4[at / 4] = T4(v);
    else
      y[at] = T(v.x);
  }
}

void main() {
  run_teams(count / N);
}

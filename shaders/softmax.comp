#version 450
// Softmax, LogSoftmax and Hardmax of rows; see team.glsl for who computes a row, row.glsl for how it is read.
// Variants: f32 f16 f32_plain f16_plain
#extension GL_GOOGLE_include_directive : require
#include "row_variant.glsl"
#include "types.glsl"
#include "float_math.glsl"
#include "team.glsl"
#include "parameters/softmax.h"
#include "row.glsl"

layout(constant_id = 6) const uint KIND = softmax_plain;

/// NaN becomes −infinity: comparisons leave it out, and sums show it again.
float number_or_least(float a) { return exact_isnan(a) ? -infinity : a; }

float row_max() {
  float top = -infinity;
  EACH_VECTOR(false, EACH_ELEMENT top = max(top, number_or_least(v[e]));)
  return team_max(top, 0);
}

void softmax_row() {
  const float top = row_max();
  float sum = 0.0;
  EACH_VECTOR(KIND == softmax_plain, EACH_ELEMENT { const float p = exact_exp(v[e] - top); sum += p;
      v[e] = KIND == softmax_plain ? p : v[e]; })
  sum = team_sum(sum, 1);
  if (KIND == softmax_logarithm) {
    const float shift = exact_log(sum);
    EACH_VECTOR(false, EACH_ELEMENT v[e] = v[e] - top - shift; store_vector(k, v);)
    return;
  }
  const float factor = exact_quotient(1.0, sum);
  [[unroll]] for (uint i = 0; i < ITEMS; ++i)
    if (lane + i * lanes < row_vectors)
      store_vector(lane + i * lanes, kept[i] * factor);
  for (uint k = lane + ITEMS * lanes; k < row_vectors; k += lanes) {
    vec4 v = load_vector(k);
    EACH_ELEMENT v[e] = exact_exp(v[e] - top) * factor;
    store_vector(k, v);
  }
}

/// 1 at the first largest element; at the first element if that is NaN.
void hardmax_row() {
  const float top = row_max();
  uint best = 0xffffffffu;
  EACH_VECTOR(false, EACH_ELEMENT {
    const uint at = k * WIDTH + e;
    if (v[e] == top || (at == 0 && exact_isnan(v[e]))) best = min(best, at);
  })
  best = team_min_index(best, 1);
  EACH_VECTOR(false, EACH_ELEMENT v[e] = k * WIDTH + e == best ? 1.0 : 0.0; store_vector(k, v);)
}

void team_row(uint row, bool present) {
  open_row(row, present);
  if (KIND == softmax_hardmax)
    hardmax_row();
  else
    softmax_row();
}

void main() {
  run_teams(rows);
}

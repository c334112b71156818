#version 450
// Products of few rows by up to three matrices of floats, bound by reading these once; see projections.glsl. A column's
// depths are neighbours, whole vectors with zeros at the end (src/launch/product.hpp packs constants so).
//
// An invocation adds up every LANES-th vector of the depth, UNROLL of each column at a time, the next ones on their way
// meanwhile.
// Variants: f32 f16 f32_plain f16_plain
#extension GL_GOOGLE_include_directive : require
#include "row_variant.glsl"
#define ANGLES 14
#include "projections.glsl"

layout(set = 0, binding = 5, std430) readonly buffer weights_0 { VECTOR w0[]; };
layout(set = 0, binding = 6, std430) readonly buffer biases_0 { T bias0[]; };
layout(set = 0, binding = 7, std430) writeonly buffer results_0 { T y0[]; };
layout(set = 0, binding = 7, std430) writeonly buffer wide_results_0 { float wide0[]; };
layout(set = 0, binding = 8, std430) readonly buffer weights_1 { VECTOR w1[]; };
layout(set = 0, binding = 9, std430) readonly buffer biases_1 { T bias1[]; };
layout(set = 0, binding = 10, std430) writeonly buffer results_1 { T y1[]; };
layout(set = 0, binding = 10, std430) writeonly buffer wide_results_1 { float wide1[]; };
layout(set = 0, binding = 11, std430) readonly buffer weights_2 { VECTOR w2[]; };
layout(set = 0, binding = 12, std430) readonly buffer biases_2 { T bias2[]; };
layout(set = 0, binding = 13, std430) writeonly buffer results_2 { T y2[]; };
layout(set = 0, binding = 13, std430) writeonly buffer wide_results_2 { float wide2[]; };

const uint STEP = UNROLL * LANES;
VECTOR next[UNROLL * COLUMNS];

// Beyond the last vector or column others are read again: no branch, no wait.
#define LOAD(WEIGHTS, j, n)                                                                                  \
  [[unroll]] for (uint u = 0u; u < UNROLL; ++u)                                                              \
    next[u * COLUMNS + j] = WEIGHTS[n * VECTORS + min(first + u * LANES, VECTORS - 1u)];

/// Loads the vectors that an invocation multiplies from vector `first` on.
void load(place at, uint first) {
  [[unroll]] for (uint j = 0u; j < COLUMNS; ++j) {
    const uint n = min(at.column + (GATED ? j / 2u : j), columns_of(at.part) - 1u);
    if (GATED ? j % 2u == 1u : PARTS > 1u && at.part == 1u) {
      LOAD(w1, j, n)
    } else if (PARTS > 2u && at.part == 2u) {
      LOAD(w2, j, n)
    } else {
      LOAD(w0, j, n)
    }
  }
}

float product_sum(VECTOR a, VECTOR b, float sum) {
#ifdef TROUPE_f16
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    const vec2 p = unpackHalf2x16(a[i]), q = unpackHalf2x16(b[i]);
    sum = fma(p.x, q.x, fma(p.y, q.y, sum));
  }
  return sum;
#else
  return fma(a.x, b.x, fma(a.y, b.y, fma(a.z, b.z, fma(a.w, b.w, sum))));
#endif
}

T bias_of(uint p, uint n) {
  return p == 0u ? bias0[n] : p == 1u ? bias1[n] : bias2[n];
}

void write(uint p, uint at, float value) {
  if (p == 0u) {
    WRITE(y0, wide0)
  } else if (p == 1u) {
    WRITE(y1, wide1)
  } else {
    WRITE(y2, wide2)
  }
}

void main() {
  begin();
  ask_for_rows();
  const place at = place_of(flat_group());
  load(at, lane);
  const ends e = ask_for_ends(at);
  keep_rows();
  clear_sums();
  for (uint first = lane; first < VECTORS; first += STEP) {
    VECTOR now[UNROLL * COLUMNS];
    [[unroll]] for (uint u = 0u; u < UNROLL * COLUMNS; ++u)
      now[u] = next[u];
    if (first + STEP < VECTORS)
      load(at, first + STEP);
    [[unroll]] for (uint u = 0u; u < UNROLL; ++u)
      if (first + u * LANES < VECTORS)
        [[unroll]] for (uint i = 0u; i < ROWS; ++i) {
          const VECTOR a = row_vector(i, first + u * LANES);
          [[unroll]] for (uint j = 0u; j < COLUMNS; ++j)
            sums[i * COLUMNS + j] = product_sum(a, now[u * COLUMNS + j], sums[i * COLUMNS + j]);
        }
  }
  finish(at, e);
}

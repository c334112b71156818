#version 450
// MatMulNBits for few rows, bound by reading the codes once: Y[m, n] = Σ A[m, k] · (code − zero) · scale + bias[n].
//
// A team of LANES invocations computes one column of ROWS rows: an invocation takes every LANES-th word of codes, UNROLL of
// them in flight, then the team adds its sums in shared memory. LANES and THREADS are powers of two, ROWS ≤ LANES ≤ THREADS.
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require
#include "nbits.glsl"

layout(local_size_x_id = 2) in;
layout(constant_id = 2) const uint THREADS = 256u;
layout(constant_id = 3) const uint LANES = 32u;
layout(constant_id = 4) const uint ROWS = 1u;
layout(constant_id = 5) const bool VECTORS = false; // K is a multiple of 4
layout(constant_id = 6) const bool HAS_BIAS = false;
const uint UNROLL = 4u;

layout(set = 0, binding = 4, std430) readonly buffer operand_a { T a[]; };
layout(set = 0, binding = 4, std430) readonly buffer operand_a_vectors { T4 a_vectors[]; };
layout(set = 0, binding = 5, std430) readonly buffer bias_buffer { T bias[]; };
layout(set = 0, binding = 6, std430) writeonly buffer output_buffer { T result[]; };

shared float team_sums[ROWS * THREADS];

/// A's depths [k, k + 4) of a row; 0 beyond K.
vec4 a_load(uint row, uint k) {
  if (VECTORS)
    return k < K ? vec4(a_vectors[(row * K + k) / 4u]) : vec4(0.0);
  vec4 v = vec4(0.0);
  [[unroll]] for (uint i = 0u; i < 4u; ++i)
    if (k + i < K)
      v[i] = float(a[row * K + k + i]);
  return v;
}

void main() {
  const uint id = gl_LocalInvocationID.x, lane = id % LANES;
  const uint n = flat_group() * (THREADS / LANES) + id / LANES;
  float sums[ROWS];
  [[unroll]] for (uint row = 0u; row < ROWS; ++row)
    sums[row] = 0.0;

  if (n < N)
    for (uint first = lane; first < column_words; first += UNROLL * LANES) {
      uint words[UNROLL];
      [[unroll]] for (uint u = 0u; u < UNROLL; ++u) {
        const uint at = first + u * LANES;
        words[u] = at < column_words ? codes[n * column_words + at] : 0u;
      }
      [[unroll]] for (uint u = 0u; u < UNROLL; ++u) {
        const uint at = first + u * LANES, k = at * WORD_DEPTHS;
        if (k < K) {
          const uint block = k >> block_shift;
          const float scale = float(scales[n * blocks + block]), zero = zero_of(n, block);
          [[unroll]] for (uint part = 0u; part < WORD_DEPTHS / 4u; ++part) {
            const vec4 w = (codes_of(words[u], part) - zero) * scale;
            [[unroll]] for (uint row = 0u; row < ROWS; ++row)
              sums[row] += dot(w, a_load(row, k + part * 4u));
          }
        }
      }
    }

  [[unroll]] for (uint row = 0u; row < ROWS; ++row)
    team_sums[row * THREADS + id] = sums[row];
  barrier();
  for (uint half_team = LANES / 2u; half_team > 0u; half_team /= 2u) {
    if (lane < half_team)
      [[unroll]] for (uint row = 0u; row < ROWS; ++row)
        team_sums[row * THREADS + id] += team_sums[row * THREADS + id + half_team];
    barrier();
  }
  if (lane < ROWS && n < N)
    result[lane * N + n] = T(team_sums[lane * THREADS + id - lane] + (HAS_BIAS ? float(bias[n]) : 0.0));
}

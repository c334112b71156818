#version 450
// Matrix products of few rows, bound by reading B once: C[m, n] for m < ROWS, with the depths of a column as
// neighbours.
//
// A team of LANES invocations computes COLUMNS columns of every row: an invocation adds up every LANES-th vector of the
// depth, UNROLL loads of each column in flight, then the team adds its sums in shared memory. Operands and epilogue:
// gemm.glsl. Invariants: LANES and THREADS are powers of two, and ROWS · COLUMNS ≤ LANES ≤ THREADS.
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require
#ifdef TROUPE_f16
#define EIGHT_WIDE
#endif
#include "gemm.glsl"
#ifdef EIGHT_WIDE
#define VECTOR uvec4
#else
#define VECTOR vec4
#endif
#include "matmul_operand.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 256;
layout(constant_id = 1) const uint LANES = 32;
layout(constant_id = 2) const uint COLUMNS = 1;
layout(constant_id = 3) const uint ROWS = 1;
layout(constant_id = 4) const uint UNROLL = 4;

const uint SUMS = ROWS * COLUMNS;

shared float team_sums[SUMS * THREADS];

float product_sum(TILE_VECTOR x, TILE_VECTOR y, float sum) {
#ifdef EIGHT_WIDE
  [[unroll]] for (uint i = 0; i < 4; ++i) {
    const vec2 p = unpackHalf2x16(x[i]), q = unpackHalf2x16(y[i]);
    sum = fma(p.x, q.x, fma(p.y, q.y, sum));
  }
  return sum;
#else
  return fma(x.x, y.x, fma(x.y, y.y, fma(x.z, y.z, fma(x.w, y.w, sum))));
#endif
}

void main() {
  const uint id = gl_LocalInvocationID.x, lane = id % LANES;
  const uint n = (flat_group() * (THREADS / LANES) + id / LANES) * COLUMNS;

  line rows[ROWS], columns[COLUMNS];
  float sums[SUMS];
  [[unroll]] for (uint i = 0; i < ROWS; ++i)
    rows[i] = a_line_at(i);
  [[unroll]] for (uint j = 0; j < COLUMNS; ++j)
    columns[j] = b_line(n + j);
  [[unroll]] for (uint i = 0; i < SUMS; ++i)
    sums[i] = 0.0;

  for (uint k0 = lane * WIDTH; k0 < product.k; k0 += UNROLL * LANES * WIDTH) {
    TILE_VECTOR b_next[UNROLL * COLUMNS];
    [[unroll]] for (uint u = 0; u < UNROLL; ++u)
      [[unroll]] for (uint j = 0; j < COLUMNS; ++j)
        b_next[u * COLUMNS + j] = b_load(columns[j], k0 + u * LANES * WIDTH, product.k);
    [[unroll]] for (uint u = 0; u < UNROLL; ++u)
      [[unroll]] for (uint i = 0; i < ROWS; ++i) {
        const TILE_VECTOR x = a_load(rows[i], k0 + u * LANES * WIDTH, product.k);
        [[unroll]] for (uint j = 0; j < COLUMNS; ++j)
          sums[i * COLUMNS + j] = product_sum(x, b_next[u * COLUMNS + j], sums[i * COLUMNS + j]);
      }
  }

  [[unroll]] for (uint i = 0; i < SUMS; ++i)
    team_sums[i * THREADS + id] = sums[i];
  barrier();
  for (uint half_team = LANES / 2; half_team > 0; half_team /= 2) {
    if (lane < half_team)
      [[unroll]] for (uint i = 0; i < SUMS; ++i)
        team_sums[i * THREADS + id] += team_sums[i * THREADS + id + half_team];
    barrier();
  }
  if (lane < SUMS)
    emit(lane / COLUMNS, n + lane % COLUMNS, team_sums[lane * THREADS + id - lane]);
}

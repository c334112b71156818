#version 450
// Products of 8-bit matrices (integer_product.glsl): a group computes 16 × 16 results, 16 depths at a time in shared
// memory. Groups: x column tiles, y row tiles, z the batch. Variants name the types of A and B.
// Variants: u8_u8 u8_i8 i8_u8 i8_i8
#extension GL_GOOGLE_include_directive : require
#include "integer_product.glsl"
#include "parameters/matmul_integer.h"

layout(local_size_x = 16, local_size_y = 16) in;

shared int a_tile[16][17];
shared int b_tile[16][17];

void main() {
  const uint x = gl_LocalInvocationID.x, y = gl_LocalInvocationID.y;
  const uint n = gl_WorkGroupID.x * 16u + x, m = gl_WorkGroupID.y * 16u + y;
  uint a_start = 0u, b_start = 0u, rest = gl_WorkGroupID.z;
  for (uint i = 0u; i < batch_rank; ++i) {
    const uint size = batch_axes[i].x, next = rest / size;
    a_start += (rest - next * size) * batch_axes[i].y;
    b_start += (rest - next * size) * batch_axes[i].z;
    rest = next;
  }
  const int a_middle = m < M ? a_zero(m) : 0, b_middle = n < N ? b_zero(n) : 0;
  int sum = 0;
  for (uint k0 = 0u; k0 < K; k0 += 16u) {
    a_tile[y][x] = m < M && k0 + x < K ? int(a[a_start + m * K + k0 + x]) - a_middle : 0;
    b_tile[y][x] = n < N && k0 + y < K ? int(b[b_start + (k0 + y) * N + n]) - b_middle : 0;
    barrier();
    [[unroll]] for (uint k = 0u; k < 16u; ++k)
      sum += a_tile[y][k] * b_tile[k][x];
    barrier();
  }
  if (m < M && n < N)
    store((gl_WorkGroupID.z * M + m) * N + n, m, n, sum);
}

// Operand A and the batches of matrix products whose operands are stored with strides. See gemm.glsl.
#include "parameters/matmul.h"

/// Where this group's matrices start in A and B.
uvec2 batch_start() {
  uvec2 start = uvec2(a_start, b_start);
  uint rest = gl_WorkGroupID.z / product.splits;
  for (uint i = 0; i < batch_rank; ++i) {
    const uint size = batch_axes[i].x, next = rest / size;
    start += (rest - next * size) * batch_axes[i].yz;
    rest = next;
  }
  return start;
}

uint batch_of_b() {
  return batch_start().y;
}
uint column_of_bias(uint n) {
  return product.first_column + n;
}
uint out_at(uint m, uint n) {
  return gl_WorkGroupID.z / product.splits * out_batch + m * product.out_row + (product.first_column + n) * product.out_column;
}

#include "gemm_operands.glsl"

#define a_state line

line a_line_at(uint m) {
  return line(batch_start().x + m * product.a_line, m < product.m);
}

/// A's depths [k, k + WIDTH) of one row; with line_vectors, WIDTH rows at depth k.
TILE_VECTOR a_load(line l, uint k, uint end) {
  if (!l.inside || k >= end)
    return TILE_VECTOR(0);
  if (A_MODE == depth_vectors)
    return TILE_VECTOR(a_vectors[(l.start + k) / WIDTH]);
  if (A_MODE == line_vectors)
    return TILE_VECTOR(a_vectors[(l.start + k * product.a_depth) / WIDTH]);
#ifdef EIGHT_WIDE
  float16_t e[8];
  [[unroll]] for (uint i = 0; i < 8; ++i)
    e[i] = k + i < end ? a[l.start + (k + i) * product.a_depth] : float16_t(0);
  return pack_vector(e);
#else
  vec4 e = vec4(0);
  [[unroll]] for (uint i = 0; i < 4; ++i)
    if (k + i < end)
      e[i] = float(a[l.start + (k + i) * product.a_depth]);
  return e;
#endif
}

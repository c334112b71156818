// Operand A of matrix products of floats. See gemm.glsl.
#include "matmul_batch.glsl"
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

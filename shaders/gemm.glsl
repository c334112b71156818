// What all matrix-product kernels share: C[M, N] = act(alpha · A[M, K] · B[K, N] + beta · bias + residual).
//
// A convolution is such a product whose rows are output pixels (conv_operand.glsl). How an operand is read is its *mode*:
//   0  vectors along the depth: its stride is 1 and every vector is aligned and whole
//   1  single elements, neighbouring invocations along the depth
//   2  single elements, neighbouring invocations along the rows of A or the columns of B
//   3  vectors along the rows or columns: their stride is 1 and every vector is aligned and whole (cooperative kernels only)
// A vector is 4 elements, or 8 float16 where EIGHT_WIDE is defined (cooperative kernels). Rows, columns and depths beyond M, N and K
// read as 0 and are not written.
//
// Groups: x counts row tiles, y column tiles, z = batch · splits + split. A split sums the depths [split · split_depth,
// + split_depth) and writes raw float sums to scratch[split][batch][M][N]; split_sum.comp adds them and applies the epilogue.
// split_depth is a multiple of the tile's depth.
//
// The including kernel declares its parameter block with PRODUCT_PARAMETERS first, then includes gemm_operands.glsl.
#ifndef TROUPE_GEMM
#define TROUPE_GEMM

#include "types.glsl"
#include "common.glsl"
#include "activation.glsl"

layout(constant_id = 6) const uint A_MODE = 0;
layout(constant_id = 7) const uint B_MODE = 0;
layout(constant_id = 8) const uint FLAGS = 0;
layout(constant_id = 9) const uint ACTIVATION = 0;

const bool HAS_BIAS = (FLAGS & 1u) != 0u;
const bool HAS_RESIDUAL = (FLAGS & 2u) != 0u;
const bool IS_SPLIT = (FLAGS & 4u) != 0u;
const bool VECTOR_OUT = (FLAGS & 8u) != 0u; // WIDTH neighbouring columns may be written at once
const bool STRIDED_OUT = (FLAGS & 16u) != 0u; // a convolution whose output rows are not simply `out_row` apart

// 20 words. Strides are in elements; bias strides are 0 where it is broadcast.
#define PRODUCT_PARAMETERS \
  uint M, N, K, split_depth; \
  uint splits, b_column, b_depth, out_row; \
  uint out_column, bias_row, bias_column, first_column; \
  float alpha, beta, act_alpha, act_beta; \
  uint a_line, a_depth, batches, unused;

/// n / d for n < 2^31; `magic` is src/launch/tiling.hpp's divisor(d).
uint divide(uint n, uvec2 magic) {
  uint high, low;
  umulExtended(n, magic.x, high, low);
  return (high + n) >> magic.y;
}

#endif

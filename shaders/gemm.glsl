// What all matrix-product kernels share: C[M, N] = act(alpha · A[M, K] · B[K, N] + beta · bias + residual).
//
// A convolution is such a product whose rows are output pixels (conv_operand.glsl). How an operand is read is its
// *mode* (parameters/product.h). Rows, columns and depths beyond m, n and k read as 0 and are not written.
//
// Groups: x counts row tiles, y column tiles, z = batch · splits + split. A split sums the depths [split · split_depth,
// + split_depth) and writes raw float sums to scratch[split][batch][M][N]; split_sum.comp adds them and applies the
// epilogue. split_depth is a multiple of the tile's depth.
//
// The including kernel includes its parameters, which begin with `product`, then gemm_operands.glsl.
#ifndef TROUPE_GEMM
#define TROUPE_GEMM

#include "types.glsl"
#include "common.glsl"
#include "activation.glsl"
#include "parameters/product.h"

layout(constant_id = 6) const uint A_MODE = depth_vectors;
layout(constant_id = 7) const uint B_MODE = depth_vectors;
layout(constant_id = 8) const uint FLAGS = 0;
layout(constant_id = 9) const uint ACTIVATION = 0;

const bool HAS_BIAS = (FLAGS & product_bias) != 0u;
const bool HAS_RESIDUAL = (FLAGS & product_residual) != 0u;
const bool IS_SPLIT = (FLAGS & product_split) != 0u;
const bool IS_BATCHED = (FLAGS & product_batched) != 0u;
const bool VECTOR_OUT = (FLAGS & product_vector_out) != 0u; // WIDTH neighbouring columns may be written at once
const bool STRIDED_OUT = (FLAGS & product_strided_out) != 0u;

uint batch_index(); // which product of several this group is of (product_lines.glsl)

/// n / d for n < 2^31; `magic` is src/launch/tiling.hpp's divisor(d).
uint divide(uint n, uvec2 magic) {
  uint high, low;
  umulExtended(n, magic.x, high, low);
  return (high + n) >> magic.y;
}

#endif

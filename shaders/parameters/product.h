// What the blocks of all matrix products begin with, and the numbers of their constants (gemm.glsl).
#ifndef TROUPE_PRODUCT_PARAMETERS
#define TROUPE_PRODUCT_PARAMETERS

#include "block.h"

/// Strides are in elements; bias strides are 0 where it is broadcast.
struct product_parameters {
  uint m, n, k, split_depth;
  uint splits, b_column, b_depth, out_row;
  uint out_column, bias_row, bias_column, first_column;
  float alpha, beta, act_alpha, act_beta;
  uint a_line, a_depth, batches, out_first; // out_first: of C in the output
};

/// Modes, how an operand is read. A vector is 4 elements, or 8 float16 if EIGHT_WIDE is defined (cooperative kernels of
/// float16).
CONSTANT depth_vectors = 0;  // along the depth: its stride is 1 and every vector is aligned and whole
CONSTANT depth_elements = 1; // single elements, neighbouring invocations along the depth
CONSTANT line_elements = 2;  // single elements, neighbouring invocations along the rows of A or the columns of B
// along the rows or columns: their stride is 1, all aligned and whole (tiled and cooperative kernels only)
CONSTANT line_vectors = 3;

/// Flags, also of convolutions that are not products.
CONSTANT product_bias = 1, product_residual = 2;
CONSTANT product_split = 4;
CONSTANT product_vector_out = 8;   // neighbouring columns may be written as a vector
CONSTANT product_strided_out = 16; // a convolution whose output rows are not simply `out_row` apart
CONSTANT product_taps_first = 32;  // depthwise weights are [taps][filters]
CONSTANT product_whole_tiles = 64; // no tile is beyond the product if the last rows' moves up (matmul_matrices only)
CONSTANT product_batched = 128;    // several products, or groups of a convolution
// beside those of quantized.h: few groups wait for memory, which ask for all at once (cooperative kernels only)
CONSTANT product_asks_first = 16777216;
// also beside them: a convolution by a packed image (src/launch/packed_image.hpp) whose windows have half of the last
// vector of each row; the other half is a pixel that counts as 0
CONSTANT product_half_tail = 33554432;

/// Cooperative kernels keep two buffers of both tiles if they take no more shared memory than this.
CONSTANT product_double_buffer_bytes = 49152;

#endif

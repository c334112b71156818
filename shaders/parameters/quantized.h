// Flags of kernels that multiply bytes with scales (quantized_result.glsl), beside those of product.h.
#ifndef TROUPE_QUANTIZED_PARAMETERS
#define TROUPE_QUANTIZED_PARAMETERS

#include "block.h"

CONSTANT quantized_a_unsigned = 256, quantized_b_unsigned = 512;  // uint8, else int8
CONSTANT quantized_a_zero = 1024;                                 // A has a zero point
CONSTANT quantized_b_zero = 2048, quantized_b_zeros = 4096;       // B has one; one for each column
CONSTANT quantized_b_scales = 8192;                               // a scale for each column, else one
CONSTANT quantized_biases = 16384;                                // a bias for each column, else one (if product_bias)
CONSTANT quantized_column_sums = 32768;                           // B's column sums are given
CONSTANT quantized_out = 65536, quantized_out_signed = 131072;    // results are bytes, else floats; int8, else uint8
CONSTANT quantized_out_zero = 262144;                             // results have a zero point
// If product_residual, a sum with it follows.
// the residual is uint8, else int8; has a zero point
CONSTANT quantized_r_unsigned = 524288, quantized_r_zero = 1048576;
CONSTANT quantized_z_signed = 2097152, quantized_z_zero = 4194304;  // the sum is int8, else uint8; has a zero point
// single scales and zero points are in the block, else in buffers
CONSTANT quantized_known = 8388608;

/// Where they are in a block, in words: after what every kernel has of its own.
CONSTANT quantized_numbers_at = 64;

/// Those of A, y, r and z; zero points as bytes are in memory, numbers that are absent 0.
struct quantized_numbers {
  float a_scale, y_scale, r_scale, z_scale;
  float y_inverse, z_inverse; // of the scales
  uint a_zero, y_zero, r_zero, z_zero;
};

/// A mode of operand A beside those of product.h: words of four bytes along the depth, every word aligned and whole.
CONSTANT depth_words = 4;

#endif

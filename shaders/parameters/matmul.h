// Parameters of products of strided operands (matmul_operand.glsl).
#include "product.h"

PARAMETERS(matmul) {
  product_parameters product;
  uint a_start, b_start, out_batch, batch_rank;
  uvec4 batch_axes[6]; // size, step in A, step in B; innermost first
};

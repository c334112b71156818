// Parameters of matmul_integer.comp.
#include "block.h"

PARAMETERS(matmul_integer) {
  uint M, N, K, batch_rank;
  uvec4 batch_axes[6]; // size, step in A, step in B; innermost first
};

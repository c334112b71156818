// Parameters of kernels over rows of `size` elements, `inner` apart: arg_reduce.comp, cumulative.comp.
#include "block.h"

PARAMETERS(row_extent) {
  uint rows, size, inner;
};

// What kernels of integer_product.glsl do with their sums.
#include "block.h"

/// The results: the sums, or sums that are quantised.
CONSTANT result_sums = 0, result_uint8 = 1, result_int8 = 2;

/// Zero points and scales of an operand: none, one for all, or one for each row of A or column of B.
CONSTANT spread_none = 0, spread_one = 1, spread_each = 2;

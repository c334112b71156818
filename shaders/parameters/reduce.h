// What reduce.comp computes; its parameters are reduce_walk.h's.
#include "block.h"

CONSTANT reduce_sum = 0, reduce_mean = 1, reduce_maximum = 2, reduce_minimum = 3, reduce_product = 4, reduce_l1 = 5,
         reduce_l2 = 6, reduce_log_sum = 7, reduce_log_sum_exp = 8, reduce_sum_square = 9;

/// What a launch does: everything, the parts of each result, or the results from their parts.
CONSTANT reduce_all = 0, reduce_parts = 1, reduce_merge = 2;

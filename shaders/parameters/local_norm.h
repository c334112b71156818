// What local_norm.comp divides by; its parameters are reduce_walk.h's.
#include "block.h"

/// Mean and variance, the sum of magnitudes, or the root of the sum of squares.
CONSTANT local_norm_variance = 0, local_norm_magnitudes = 1, local_norm_squares = 2;

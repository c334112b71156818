// What ScatterElements and ScatterND do with an element and its update (scatter.glsl).
#include "block.h"

CONSTANT scatter_none = 0, scatter_add = 1, scatter_mul = 2, scatter_min = 3, scatter_max = 4;

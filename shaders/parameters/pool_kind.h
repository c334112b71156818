// What the pooling kernels compute (pool.glsl).
#include "block.h"

CONSTANT pool_kind_maximum = 0, pool_kind_average = 1, pool_kind_norm = 2;

// What attention_projection.comp adds to a product; its parameters are attention_row.h's.
#ifndef TROUPE_ATTENTION_PROJECTION
#define TROUPE_ATTENTION_PROJECTION
#include "block.h"

CONSTANT attention_projection_bias = 1, attention_projection_residual = 2;

#endif

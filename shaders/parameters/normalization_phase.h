// What a launch of normalization.comp or group_norm.comp does.
#ifndef TROUPE_NORMALIZATION_PHASE
#define TROUPE_NORMALIZATION_PHASE
#include "block.h"

/// Everything, the moments of the parts, or the result from them.
CONSTANT normalization_all = 0, normalization_moments = 1, normalization_result = 2;

#endif

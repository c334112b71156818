// Parameters of normalization.comp.
#include "block.h"

PARAMETERS(normalization) {
  uint rows;     // parts of all slices
  uint parts;    // of a slice
  uint vectors;  // of a slice
  uint per_part; // vectors
  uint channels, groups, pixels;
  uint channels_each; // of a scale
  float epsilon;
};

/// What a launch does: everything, the moments of the parts, or the result from them.
CONSTANT normalization_all = 0, normalization_moments = 1, normalization_result = 2;

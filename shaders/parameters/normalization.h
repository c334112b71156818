// Parameters of normalization.comp.
#include "block.h"
#include "normalization_phase.h"

PARAMETERS(normalization) {
  uint rows;     // parts of all slices
  uint parts;    // of a slice
  uint vectors;  // of a slice
  uint per_part; // vectors
  uint channels, groups, pixels;
  uint channels_each; // of a scale
  float epsilon;
  float act_alpha, act_beta;
};

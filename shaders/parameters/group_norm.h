// Parameters of group_norm.comp.
#include "block.h"
#include "normalization_phase.h"

PARAMETERS(group_norm) {
  uint images, pixels, channels;
  uint parts;     // of an image's pixels
  uint per_part;  // pixels
  uint channels_each; // of a scale
  float epsilon;
  float act_alpha, act_beta;
};

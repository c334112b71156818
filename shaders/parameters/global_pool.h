// Parameters of global_pool.comp.
#include "block.h"

PARAMETERS(global_pool) {
  // count: channels (in vectors) of all images; 1: teams are along the pixels
  uint count, channels, pixels, pixels_first;
  uint in_image, in_channel, in_pixel, unused; // steps
};

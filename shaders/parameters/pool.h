// Parameters of pool.comp.
#include "block.h"

PARAMETERS(pool) {
  uint count, channels, kernel_d, channels_first; // count: invocations with something to do; channels: in vectors
  uint in_image, in_channel, in_pixel, columns_first; // steps; columns_first: indices count along depth first
  uint out_image, out_channel, out_pixel, unused;
  uvec4 in_size;  // depth, height, width
  uvec4 out_size;
  ivec4 stride;
  ivec4 dilation;
  ivec4 pad;
  ivec4 pad_end;
};

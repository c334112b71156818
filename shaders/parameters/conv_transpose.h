// Parameters of conv_transpose.comp.
#include "block.h"

PARAMETERS(conv_transpose) {
  uint count, channels, filters, unused; // elements of the output; channels and filters of a group
  uint in_image, in_channel, in_pixel, groups;
  uint out_image, out_channel, out_pixel, channels_first; // 1: neighbouring invocations along the pixels
  float act_alpha, act_beta;
  uint unused_a, unused_b;
  uvec4 in_size;  // depth, height, width
  uvec4 out_size; // depth, height, width
  uvec4 kernel;
  ivec4 stride;
  ivec4 dilation;
  ivec4 pad;
};

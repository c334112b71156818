// Parameters of depthwise.comp.
#include "block.h"

PARAMETERS(depthwise) {
  uint count, filters, multiplier, kernel_d; // count: invocations that have something to do
  uint in_image, in_channel, in_pixel, channels_first; // steps; 1: neighbouring invocations along the pixels
  uint out_image, out_channel, out_pixel, images;
  float act_alpha, act_beta;
  uint out_first, unused; // out_first: where the output begins
  uvec4 in_size;  // depth, height, width
  uvec4 out_size; // depth, height, blocks of PIXELS in a row, width
  ivec4 stride;
  ivec4 dilation;
  ivec4 pad;
};

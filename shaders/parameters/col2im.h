// Parameters of col2im.comp. Axes: depth, height, width.
#include "block.h"

PARAMETERS(col2im) {
  uint count; // of y
  uint taps, positions, unused;
  uvec4 in_size; // of the image
  uvec4 out_size;
  uvec4 kernel;
  uvec4 stride;
  uvec4 dilation;
  uvec4 pad;
};

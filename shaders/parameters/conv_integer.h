// Parameters of conv_integer.comp.
#include "block.h"

PARAMETERS(conv_integer) {
  uint count;
  uint filter_channels; // channels that a filter reads
  uint filters;
  uint per_group; // filters of a group
  ivec4 in_size;  // three spatial axes each
  ivec4 out_size;
  ivec4 kernel;
  ivec4 stride;
  ivec4 dilation;
  ivec4 pad;
};

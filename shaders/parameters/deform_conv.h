// Parameters of deform_conv.comp. Pairs: rows, columns.
#include "block.h"

PARAMETERS(deform_conv) {
  uint count; // of samples, or of y
  uint channels, filters, taps;
  uint offset_channels; // channels of an offset group
  uint depth;           // samples that a filter meets: channels of its group times taps
  uint group_filters;
  uint kernel_columns;
  uvec4 size; // in, out
  uvec4 step; // stride, dilation
  ivec4 pad;  // the first two
};

CONSTANT deform_samples = 0, deform_products = 1; // what a launch makes

/// Flags.
CONSTANT deform_bias = 1, deform_mask = 2;

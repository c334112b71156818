// Parameters of quantization.glsl.
#include "block.h"

PARAMETERS(quantization) {
  uint count;
  uint inner;  // elements after the axis
  uint size;   // of the axis
  uint block;  // neighbours along the axis that share a scale
  uint blocks; // along the axis
};

/// One scale for all, one for each index of an axis, or one for each block of an axis.
CONSTANT scale_whole = 0, scale_axis = 1, scale_blocks = 2;

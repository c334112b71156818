// Parameters of grid_sample.comp.
#include "block.h"

PARAMETERS(grid_sample) {
  uint count; // of y
  uint channels, places, axes;
  uvec4 size; // of x along depth, height, width: 1 for axes that are missing
};

CONSTANT grid_nearest = 0, grid_linear = 1, grid_cubic = 2;
CONSTANT grid_zeros = 0, grid_border = 1, grid_reflection = 2, grid_border_taps = 3;

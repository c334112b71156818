// Parameters of resample.comp.
#include "block.h"

PARAMETERS(resample) {
  uint count; // of results
  uint in_size, out_size, inner;
  uint radius;                   // half the number of taps
  uint inside_begin, inside_end; // results that are not `outside`
  float slope, offset, shrink, cubic_a, outside;
};

/// Flags.
CONSTANT resample_cubic = 1, resample_excludes = 2, resample_normalises = 4;

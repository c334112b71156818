// Parameters of strided_copy.comp.
#include "block.h"

PARAMETERS(strided_copy) {
  uint count;
  uint rank;
  uint from_base;
  uint to_base;
  uvec4 axes[14]; // size, step in from, step in to
};

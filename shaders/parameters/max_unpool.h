// Parameters of max_unpool.comp.
#include "block.h"

PARAMETERS(max_unpool) {
  uint count; // of x
  uint counted; // elements that indices count
  uint rank, unused;
  uvec4 axes[5]; // innermost first: size of what is counted, step in y
};

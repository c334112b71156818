// Parameters of range.comp.
#include "block.h"

PARAMETERS(range) {
  uint count;
  uint start_low, start_high; // bits; of a float32 if the variant is a float's
  uint delta_low, delta_high;
};

// Parameters of mask_ranges.comp.
#include "block.h"

PARAMETERS(mask_ranges) {
  uint rows, keys;
};

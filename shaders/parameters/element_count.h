// Parameters of kernels that need nothing but the number of elements: cast.comp, convert.comp, dynamic_range.comp,
// to_float16.comp.
#include "block.h"

PARAMETERS(element_count) {
  uint count;
};

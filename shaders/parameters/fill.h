// Parameters of fill.comp.
#include "block.h"

PARAMETERS(fill) {
  uint count;
  uint low, high; // the value's bits
  uint columns;   // 0: everything is filled
  int k;
};

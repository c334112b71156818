// Parameters of top_k.comp.
#include "block.h"

PARAMETERS(top_k) {
  uint rows, size, inner, k;
};

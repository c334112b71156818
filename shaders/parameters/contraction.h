// Parameters of contraction.comp.
#include "block.h"

PARAMETERS(contraction) {
  uint count; // of results
  uint kept_rank, summed, summed_rank; // summed: products of a result
  uvec4 kept[8];                       // innermost first: size, step in a, step in b
  uvec4 reduced[8];
};

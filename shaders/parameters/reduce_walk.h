// Parameters of kernels that reduce over any axes (reduce_walk.glsl): reduce.comp, local_norm.comp.
#include "block.h"

PARAMETERS(reduce_walk) {
  uint rows;      // results, or parts of results: result + part · results
  uint count;     // elements of a result
  uint kept_rank; // at least 1, like reduced_rank
  uint reduced_rank;
  uint parts;    // of a result
  uint per_part; // elements
  float epsilon;
  uint results;
  uvec4 axes[8]; // innermost first: size and step of a kept axis, size and step of a reduced one
};

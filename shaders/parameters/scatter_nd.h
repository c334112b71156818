// Parameters of scatter_nd.comp.
#include "block.h"

PARAMETERS(scatter_nd) {
  uint count;
  uint run;
  uint tuple;   // indices of a tuple
  uint repeats; // tuples of an invocation
  uint index_words, unused0, unused1, unused2;
  uvec4 axes[14]; // of a tuple, outermost first: bound, step in y
};

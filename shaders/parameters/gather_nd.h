// Parameters of gather_nd.comp.
#include "block.h"

PARAMETERS(gather_nd) {
  uint count;
  uint run;
  uint tuple;       // indices of a tuple
  uint batch_tuples; // tuples of one batch
  uint batch_step;  // words of x of one batch
  uint index_words, unused0, unused1;
  uvec4 axes[14]; // of a tuple, outermost first: bound, step in x
};

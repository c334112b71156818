// Parameters of gather.comp.
#include "block.h"

PARAMETERS(gather) {
  uint count;
  uint picks; // number of indices
  uint run;
  uint bound; // of the indices
  uint first, size;
  uint index_words;
};

// Parameters of gather_elements.comp.
#include "block.h"

PARAMETERS(gather_elements) {
  uint count;
  uint rank;
  uint bound; // of the indices
  uint step;  // in x along the picked axis
  uint index_words, unused0, unused1, unused2;
  uvec4 axes[14]; // size, step in x (0 for the picked axis)
};

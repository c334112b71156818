// Parameters of scatter_elements.comp.
#include "block.h"

PARAMETERS(scatter_elements) {
  uint count;
  uint rank;
  uint repeats;     // updates of an invocation
  uint repeat_step; // between them
  uint bound, step; // of the indexed axis of y
  uint index_words, unused;
  uvec4 axes[14]; // size, step in indices and updates, step in y (0 for the indexed axis)
};

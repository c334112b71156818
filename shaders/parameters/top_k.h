// Parameters of top_k.comp.
#include "block.h"

PARAMETERS(top_k) {
  uint rows, size, inner, k;
  uint pieces;          // of a row
  uint candidate_count; // of a row: the elements, or what earlier launches found
};

// Parameters of trilu.comp.
#include "block.h"

PARAMETERS(trilu) {
  uint count;
  uint rows, columns;
  uint upper;
  uint k_words; // 0: k is 0
};

// Parameters of one_hot.comp.
#include "block.h"

PARAMETERS(one_hot) {
  uint count;
  uint depth;
  uint inner;
  uint kind; // of the indices, see below; of integers, the words of one
};

CONSTANT one_hot_int32 = 1, one_hot_int64 = 2, one_hot_float32 = 3;

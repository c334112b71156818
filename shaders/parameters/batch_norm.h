// Parameters of batch_norm.comp.
#include "block.h"

PARAMETERS(batch_norm) {
  uint count;
  uint channels;
  uint inner; // neighbouring elements of one channel
  float epsilon;
};

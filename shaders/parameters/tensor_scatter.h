// Parameters of tensor_scatter.comp.
#include "block.h"

PARAMETERS(tensor_scatter) {
  uint count;
  uint size, update_size; // of the axis
  uint inner;             // words of one index of the axis
  uint batch_step;
  uint start_words; // 0: every update begins at 0
  uint circular;
  uint clear_after; // 1: what is after a linear update is 0
};

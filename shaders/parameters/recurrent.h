// Parameters of recurrent.comp.
#include "block.h"

PARAMETERS(recurrent) {
  uint first_step, step_count, steps, batch;
  uint directions, batch_first, reverse, unused; // reverse: bit d says that direction d goes backwards
  float clip;                                    // infinity if there is none
};

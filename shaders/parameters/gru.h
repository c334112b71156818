// Parameters of gru.comp.
#include "block.h"

PARAMETERS(gru) {
  uint steps, batch, directions;
  uint batch_first, reverse; // reverse: bit d says that direction d goes backwards
  float clip;                // infinity if there is none
};

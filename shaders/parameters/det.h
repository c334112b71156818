// Parameters of det.comp.
#include "block.h"

PARAMETERS(det) {
  uint count; // of matrices
  uint n;
};

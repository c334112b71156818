// Parameters of lrn.comp.
#include "block.h"

PARAMETERS(lrn) {
  uint count;
  uint channels, pixels;
  uint before, behind; // channels
  float factor, beta, bias;
};

// Parameters of layer_norm.comp.
#include "block.h"

PARAMETERS(layer_norm) {
  uint rows, size, inner;
  uint rank;
  float epsilon;
  uint unused_a, unused_b, unused_c;
  uvec4 axes[8]; // of the operand, innermost first: size, step in scale, step in bias
};

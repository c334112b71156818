// Parameters of softmax.comp: rows of `size` elements, `inner` apart.
#include "block.h"

PARAMETERS(softmax) {
  uint rows, size, inner;
};

/// What becomes of a row.
CONSTANT softmax_plain = 0, softmax_logarithm = 1, softmax_hardmax = 2;

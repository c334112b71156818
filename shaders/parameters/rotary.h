// Parameters of rotary.comp.
#include "block.h"

PARAMETERS(rotary) {
  uint count, per_head, pairs, width; // per_head: invocations for the `width` elements of a head
  uint middle, inner, bshd, table_rows; // heads: [batch][middle][inner]; bshd: positions are in the middle
  // steps of the tables; second: from the first element's angle to the second's
  uint cos_batch, sin_batch, table_row, second;
};

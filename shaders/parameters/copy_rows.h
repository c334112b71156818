// Parameters of copy_rows.comp.
#include "block.h"

/// Copies of one dispatch.
CONSTANT copy_rows_each = 8;

PARAMETERS(copy_rows) {
  uvec4 sizes[8]; // words of a row, heads, batch, positions; of a value 1 each but the first
  uvec4 from[8];  // in words: where the first one is, then steps of head, batch, position
  uvec4 to[8];
};

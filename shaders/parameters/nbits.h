// Parameters of nbits.glsl.
#include "block.h"
#include "nbits_zeros.h"

PARAMETERS(nbits) {
  uint K;
  uint N;
  uint block_shift;  // log2 of a block's depths
  uint blocks;       // of a column
  uint column_words; // of a column's codes
  uint zero_bytes;   // of a column's packed zero points
  uint first_column;
  uint columns;
};

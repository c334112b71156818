// Parameters of nbits.glsl.
#include "block.h"

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

/// Zero points: none, packed like the codes, one element each.
CONSTANT zeros_absent = 0, zeros_packed = 1, zeros_whole = 2;

// Parameters of products of few rows by several matrices (projections.glsl).
#include "block.h"

PARAMETERS(projections) {
  float epsilon;     // of the norm
  uint block_shift;  // of packed weights: log2 of a block's depths,
  uint blocks;       // blocks of a column,
  uint column_words; // words of a column's codes,
  uint zero_bytes;   // bytes of a column's packed zero points
  uint unused_a, unused_b, unused_c;
  uvec4 parts[3];    // by part: its first slot of teams, its columns
  vec4 numbers[3];   // by part: alpha and beta of its activation
  uint pairs, width; // of a rotated head: how many pairs, its elements
  uint sequence;     // positions of a batch element: rows
  uint second;       // from the first element's angle to the second's
  uint cos_batch, sin_batch, table_row, table_rows; // steps of the tables of angles
};

/// Norms of the rows.
CONSTANT rows_as_they_are = 0, rows_layer_norm = 1, rows_rms_norm = 2;

/// Flags: bit p says that part p has a bias.
CONSTANT projections_residual = 8; // of part 0
CONSTANT projections_gated = 16;   // the result is part 0 times part 1
CONSTANT projections_shift = 32;   // the norm has a bias
CONSTANT projections_rotated = 64;      // times 1 << p: part p's columns are rotated in pairs,
CONSTANT projections_interleaved = 512; // of neighbours,
CONSTANT projections_positions = 1024;  // by the row of the tables that its position says
CONSTANT projections_wide = 2048;       // results are float32

/// How many parts a kernel has room for: matrices of floats, packed ones (whose scales and zero points take bindings
/// too).
CONSTANT projections_most_parts = 3, projections_most_packed = 2;

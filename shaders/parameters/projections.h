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
};

/// Norms of the rows.
CONSTANT rows_as_they_are = 0, rows_layer_norm = 1, rows_rms_norm = 2;

/// Flags: bit p says that part p has a bias.
CONSTANT projections_residual = 8; // of part 0
CONSTANT projections_gated = 16;   // the result is part 0 times part 1
CONSTANT projections_shift = 32;   // the norm has a bias

/// How many parts a kernel has room for: matrices of floats, packed ones (whose scales and zero points take bindings too).
CONSTANT projections_most_parts = 3, projections_most_packed = 2;

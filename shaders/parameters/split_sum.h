// Parameters of split_sum.comp and split_norm.comp.
#include "block.h"

PARAMETERS(split_sum) {
  uint count, N, splits, out_row; // count = rows · N elements, N columns of rows that are out_row apart in the output
  uint bias_row, bias_column, out_first; // out_first: where they begin there
  float epsilon; // of the norm
  float alpha, beta, act_alpha, act_beta;
};

/// What split_norm.comp does: subtracts the mean, adds a shift, writes the sums as well.
CONSTANT split_norm_centred = 1, split_norm_shift = 2, split_norm_sums = 4;

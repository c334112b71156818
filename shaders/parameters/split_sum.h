// Parameters of split_sum.comp.
#include "block.h"

PARAMETERS(split_sum) {
  uint count, N, splits, out_row; // count = rows · N elements, N columns of rows that are out_row apart in the output
  uint bias_row, bias_column, out_first, unused; // out_first: where they begin there
  float alpha, beta, act_alpha, act_beta;
};

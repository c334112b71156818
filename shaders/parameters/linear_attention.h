// Parameters of linear_attention.comp.
#include "block.h"

PARAMETERS(linear_attention) {
  uint count; // of columns of states: batch · heads · values
  uint steps, keys, values;
  uint heads, group; // group: heads of queries that share a state
  float scale;
};

/// Flags.
CONSTANT linear_past = 1, linear_present = 2, linear_decay = 4, linear_decay_rows = 8, linear_beta = 16,
    linear_shared_beta = 32;

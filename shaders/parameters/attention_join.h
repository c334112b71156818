// Parameters of attention_join.comp.
#include "block.h"

PARAMETERS(attention_join) {
  uint count, splits, all_rows, value_width;
  uint rows, queries, kv_heads, sharing; // as in attention.comp
  uvec4 y_steps;
};

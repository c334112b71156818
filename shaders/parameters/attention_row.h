// Parameters of attention of few queries: attention_row.comp, attention_lanes.glsl.
#include "attention_flags.h"

PARAMETERS(attention_row) {
  uint rows, queries, heads, sharing; // rows = batch · heads · queries; sharing: query heads of a key head
  uint value_width;
  float scale;
  uint unused_a, unused_b;
  uvec4 q_steps; // batch, head, row, and where the first head begins
  uvec4 k_steps;
  uvec4 v_steps;
  uvec4 y_steps;
  // From here on: what the number of past keys decides.
  // past: keys of the operands for past ones; split_keys: of a split, in whole blocks
  uint keys, past, split_keys, mask_keys;
  uvec4 past_k_steps;
  uvec4 past_v_steps;
  uvec4 mask_steps; // batch, head, query, key
  int causal_offset; // query s sees keys ≤ s + causal_offset
  uint unused_c, unused_d, unused_e;
};

/// Words that the number of past keys does not decide.
CONSTANT attention_row_fixed = 24;

// Parameters of attention_row.comp.
#include "attention_flags.h"

PARAMETERS(attention_row) {
  uint rows, queries, heads, sharing;   // rows = batch · heads · queries; sharing: query heads of a key head
  uint keys, past, split_keys, mask_keys; // past: keys of the operands for past ones; split_keys: of a split, in whole blocks
  uint value_width;
  int causal_offset; // query s sees keys ≤ s + causal_offset
  float scale;
  uint unused;
  uvec4 q_steps; // batch, head, row, and where the first head begins
  uvec4 k_steps;
  uvec4 v_steps;
  uvec4 past_k_steps;
  uvec4 past_v_steps;
  uvec4 y_steps;
  uvec4 mask_steps; // batch, head, query, key
};

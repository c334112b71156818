// Parameters of attention.comp, attention_tiled.comp and attention_matrices.comp.
#include "attention_flags.h"

PARAMETERS(attention) {
  uint groups, row_blocks, rows, queries; // rows = G · queries
  uint keys, width, value_width, kv_heads;
  uint sharing, split_keys, mask_keys, all_rows; // sharing = G; split_keys: of a split, in whole tiles
  int causal_offset;                             // query s sees keys ≤ s + causal_offset
  float scale;
  float softcap; // of scores, unless it is 0
  uint unused;
  uvec4 q_steps; // batch, head, row, and where the first head begins
  uvec4 k_steps;
  uvec4 v_steps;
  uvec4 y_steps;
  uvec4 mask_steps; // batch, head, query, key
};

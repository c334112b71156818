// Parameters of attention.comp.
#include "block.h"

PARAMETERS(attention) {
  uint groups, row_blocks, rows, queries; // rows = G · queries
  uint keys, width, value_width, kv_heads;
  uint sharing, split_keys, mask_keys, all_rows; // sharing = G; split_keys: of a split, in whole tiles
  int causal_offset;                             // query s sees keys ≤ s + causal_offset
  float scale;
  float softcap; // of scores, unless it is 0
  uint unused;
  uvec4 q_steps; // batch, head, row
  uvec4 k_steps;
  uvec4 v_steps;
  uvec4 y_steps;
  uvec4 mask_steps; // batch, head, query, key
};

/// Flags.
CONSTANT attention_mask = 1, attention_mask_bytes = 2; // booleans: true takes part
CONSTANT attention_causal = 4, attention_split = 32;
CONSTANT attention_key_vectors = 8;    // rows of Q and K are whole vectors
CONSTANT attention_value_vectors = 16; // rows of V and Y
CONSTANT attention_softcap = 128, attention_limits = 256;
CONSTANT attention_skips = 64;         // masked keys are never multiplied, and a row without keys is zero

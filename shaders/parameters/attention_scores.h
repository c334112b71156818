// Parameters of attention_scores.comp.
#include "block.h"

PARAMETERS(attention_scores) {
  uint count; // of scores, or of rows for weights
  uint heads, queries, keys;
  uint width, sharing, mask_keys;
  int causal_offset;
  float scale, softcap;
  uint unused0, unused1;
  uvec4 q_steps; // batch, head, row
  uvec4 k_steps;
  uvec4 mask_steps; // batch, head, query, key
};

/// What is given: Attention's qk_matmul_output_mode.
CONSTANT scores_scaled = 0, scores_capped = 1, scores_masked = 2, scores_weights = 3;

/// Flags.
CONSTANT scores_mask = 1, scores_mask_bytes = 2, scores_causal = 4, scores_limits = 8;

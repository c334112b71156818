// Flags of the kernels of attention.
#ifndef TROUPE_ATTENTION_FLAGS
#define TROUPE_ATTENTION_FLAGS
#include "block.h"

CONSTANT attention_mask = 1, attention_mask_bytes = 2; // booleans: true takes part
CONSTANT attention_causal = 4, attention_split = 32;
CONSTANT attention_key_vectors = 8;    // rows of Q and K are whole vectors
CONSTANT attention_value_vectors = 16; // rows of V and Y
CONSTANT attention_softcap = 128, attention_limits = 256;
CONSTANT attention_past = 512;         // past keys and values are operands of their own
CONSTANT attention_wide_past = 1024;   // which are float32 beside float16
CONSTANT attention_one_mask = 2048;    // all queries and heads of a batch element have the same row of the mask
CONSTANT attention_skips = 64;         // masked keys are never multiplied, and a row without keys is zero

CONSTANT attention_batched = 4096;     // several batch elements
CONSTANT attention_shares = 8192;      // heads of queries share those of keys
CONSTANT attention_row_mask = 16384;   // all queries of a head have the same row of the mask
CONSTANT attention_one_block = 32768;  // groups have no more keys than they have on their way at once
CONSTANT attention_ranges = 65536;     // which keys count by the mask is known (mask_ranges.comp)
CONSTANT attention_shared_bytes = 40960; // what attention_matrices.comp needs of shared memory

#endif

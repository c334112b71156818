// Flags of recurrent.comp and gru.comp.
#include "block.h"

/// Flags: what there is to read and to write, and other functions than the usual ones.
CONSTANT recurrent_vectors = 1; // HIDDEN is a multiple of 4
CONSTANT recurrent_bias = 2, recurrent_initial_h = 4, recurrent_initial_c = 8;
CONSTANT recurrent_y = 16, recurrent_last_h = 32, recurrent_last_c = 64;
CONSTANT recurrent_input_forget = 128; // LSTM: f = 1 − i
CONSTANT recurrent_relu = 256;         // RNN

// Parameters of recurrent.comp.
#include "block.h"

PARAMETERS(recurrent) {
  uint first_step, step_count, steps, batch;
  uint directions, batch_first, reverse, unused; // reverse: bit d says that direction d goes backwards
  float clip;                                    // infinity if there is none
};

/// Flags: what there is to read and to write, and other functions than the usual ones.
CONSTANT recurrent_vectors = 1; // HIDDEN is a multiple of 4
CONSTANT recurrent_bias = 2, recurrent_initial_h = 4, recurrent_initial_c = 8;
CONSTANT recurrent_y = 16, recurrent_last_h = 32, recurrent_last_c = 64;
CONSTANT recurrent_input_forget = 128; // LSTM: f = 1 − i
CONSTANT recurrent_relu = 256;         // RNN

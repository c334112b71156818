// Parameters of reverse_sequence.comp.
#include "block.h"

PARAMETERS(reverse_sequence) {
  uint count;
  uint times, time_step;
  uint batches, batch_step;
  uint length_words;
};

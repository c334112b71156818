// Parameters of recurrent_project.comp.
#include "block.h"

PARAMETERS(recurrent_project) {
  uint rows, columns, depth, recurrent_bias; // columns before `recurrent_bias` get the state's bias too
};

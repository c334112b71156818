// Parameters of concat.comp.
#include "block.h"

PARAMETERS(concat) {
  uint count;
  uint line;  // words of a line that this launch writes
  uint width; // words of a line of the output
  uint begin; // where in a line they begin
  uvec4 ends[2]; // of the inputs within `line`, ascending
};

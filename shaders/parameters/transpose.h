// Parameters of transpose.comp.
#include "block.h"

PARAMETERS(transpose) {
  uint groups;
  uint rank;
  uint from_base;
  uint to_base;
  uint line, row;                  // lengths
  uint line_to, row_from;          // the line's step in the target, the row's in the source
  uint line_tiles, row_tiles, unused0, unused1;
  uvec4 axes[14];                  // size, step in source, step in target
};

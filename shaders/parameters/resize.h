// Parameters of resize.comp.
#include "block.h"

PARAMETERS(resize) {
  uint count; // invocations
  float cubic_a;
  uint unused_a, unused_b;
  uvec4 in_size; // outermost first
  uvec4 out_size;
  ivec4 up;
  ivec4 shift;
  ivec4 down;
  vec4 slope;
  vec4 offset;
};

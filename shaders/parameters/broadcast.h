// Parameters of broadcast.glsl for kernels of up to three operands.
#include "block.h"

PARAMETERS(broadcast) {
  uint count, rank, unused0, unused1;
  uvec4 dims[2];    // of the output, innermost first
  uvec4 strides[6]; // of operand i along axis a: word 8 i + a
  vec4 numbers[4];  // of elementwise.comp
};

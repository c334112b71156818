// Parameters of broadcast.glsl for kernels of up to eight operands: as in broadcast.h.
#include "block.h"

PARAMETERS(broadcast_chain) {
  uint count, rank, unused0, unused1;
  uvec4 dims[2];
  uvec4 strides[16];
  vec4 numbers[4];
};

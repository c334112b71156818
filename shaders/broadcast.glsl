// Parameters and walk of kernels whose operands broadcast together (src/launch/broadcast.hpp): up to BROADCAST_OPERANDS of them, three
// unless an includer says otherwise, and BROADCAST_NUMBERS vectors of numbers after the walk.
//
// Constant 0: how each operand is walked, two bits each: 0 like the output, 1 a single element, 2 by strides.
#ifndef TROUPE_BROADCAST
#define TROUPE_BROADCAST

#extension GL_EXT_control_flow_attributes : enable
#include "common.glsl"

#ifndef BROADCAST_OPERANDS
#define BROADCAST_OPERANDS 3
#endif

layout(local_size_x = 256) in;
const uint elements_each = 4u;

layout(constant_id = 0) const uint modes = 0u;

layout(set = 0, binding = 0, std140) uniform parameters {
  uint count;
  uint rank;
  uint unused0, unused1;
  uvec4 dims[2];                         // of the output, innermost first
  uvec4 strides[2 * BROADCAST_OPERANDS]; // of operand i along axis a: word 8 i + a
#ifdef BROADCAST_NUMBERS
  vec4 numbers[BROADCAST_NUMBERS];
#endif
};

/// Where operand i has its element for element `index` of the output.
uint offset_of(uint i, uint index) {
  const uint mode = (modes >> (2u * i)) & 3u;
  if (mode == 0u)
    return index;
  if (mode == 1u)
    return 0u;
  uint at = 0u;
  for (uint axis = 0u; axis < rank; ++axis) {
    const uint size = dims[axis >> 2u][axis & 3u], next = index / size;
    const uint word = 8u * i + axis;
    at += (index - next * size) * strides[word >> 2u][word & 3u];
    index = next;
  }
  return at;
}

#endif

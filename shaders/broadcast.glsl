// The walk of kernels whose operands broadcast together (src/launch/broadcast.hpp): up to three of them, or eight if an
// includer defines BROADCAST_CHAIN.
//
// Constant 0: how each operand is walked, two bits each: 0 like the output, 1 a single element, 2 by strides.
#ifndef TROUPE_BROADCAST
#define TROUPE_BROADCAST

#extension GL_EXT_control_flow_attributes : enable
#include "common.glsl"
#ifdef BROADCAST_CHAIN
#include "parameters/broadcast_chain.h"
#else
#include "parameters/broadcast.h"
#endif

layout(local_size_x = 256) in;
const uint elements_each = 4u;

layout(constant_id = 0) const uint modes = 0u;

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

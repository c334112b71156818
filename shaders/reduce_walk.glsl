// Rows of elements that are reduced together, whatever axes they span: where their elements are.
#include "parameters/reduce_walk.h"

/// The first element of result `row`.
uint row_at(uint row) {
  uint at = 0;
  for (uint i = 0; i + 1 < kept_rank; ++i) {
    const uint next = row / axes[i].x;
    at += (row - next * axes[i].x) * axes[i].y;
    row = next;
  }
  return at + row * axes[kept_rank - 1].y;
}

/// How far element k of a row is from its first one.
uint element_at(uint k) {
  uint at = 0;
  for (uint i = 0; i + 1 < reduced_rank; ++i) {
    const uint next = k / axes[i].z;
    at += (k - next * axes[i].z) * axes[i].w;
    k = next;
  }
  return at + k * axes[reduced_rank - 1].w;
}

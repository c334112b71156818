// Operand A of matrix products of bytes. See byte_operands.glsl.
#include "matmul_batch.glsl"
#include "byte_operands.glsl"

#define a_state line

#ifdef BYTE_MATRICES
const uint a_beyond = 0; // where B is 0
#else
#define a_beyond a_fill
#endif

line a_line_at(uint m) {
  return line(batch_start().x + m * product.a_line, m < product.m);
}

/// A's depths [k, k + 16) of one row.
TILE_VECTOR a_load(line l, uint k, uint end) {
  if (!l.inside || k >= end)
    return uvec4(a_beyond);
  if (A_MODE == depth_vectors)
    return A_LOADED(a_vectors[(l.start + k) / WIDTH]);
  uvec4 v;
  [[unroll]] for (uint word = 0; word < 4; ++word) {
    const uint depth = k + 4 * word;
    if (A_MODE == depth_words) {
      v[word] = depth < end ? A_LOADED(a_words[(l.start + depth) / 4]) : a_beyond;
      continue;
    }
    uint bits = 0;
    [[unroll]] for (uint byte = 0; byte < 4; ++byte)
      bits |= ((depth + byte < end ? A_LOADED(uint(a[l.start + depth + byte])) : a_beyond) & 255u) << (8 * byte);
    v[word] = bits;
  }
  return v;
}

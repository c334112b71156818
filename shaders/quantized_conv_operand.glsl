// Operand A of convolutions of bytes. See byte_operands.glsl.
#include "conv_window.glsl"
#include "byte_operands.glsl"

/// A's depths [k, k + 16) of one row.
TILE_VECTOR a_load(a_state s, uint k, uint end) {
  if (k >= end)
    return uvec4(a_fill);
  if (A_MODE == depth_vectors) {
    const int at = a_address(s, depth_at(k));
    return at < 0 ? uvec4(a_fill) : A_LOADED(a_vectors[uint(at) / WIDTH]);
  }
  uvec4 v;
  if (A_MODE == depth_words) {
    [[unroll]] for (uint word = 0; word < 4; ++word) {
      const uint depth = k + 4 * word;
      const int at = depth < end ? a_address(s, depth_at(depth)) : -1;
      v[word] = at < 0 ? a_fill : A_LOADED(a_words[uint(at) / 4]);
    }
    return v;
  }
  uvec4 depth = depth_at(k);
  [[unroll]] for (uint word = 0; word < 4; ++word) {
    uint bits = 0;
    [[unroll]] for (uint byte = 0; byte < 4; ++byte) {
      const int at = k + word * 4 + byte < end ? a_address(s, depth) : -1;
      bits |= ((at < 0 ? a_fill : A_LOADED(uint(a[at]))) & 255u) << (8 * byte);
      depth = next_depth(depth);
    }
    v[word] = bits;
  }
  return v;
}

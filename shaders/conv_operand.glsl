// Operand A of convolutions of floats. See gemm.glsl.
#include "conv_window.glsl"
#include "gemm_operands.glsl"

/// A's depths [k, k + WIDTH) of one row.
TILE_VECTOR a_load(a_state s, uint k, uint end) {
  uvec4 depth = depth_at(k);
  if (A_MODE == depth_vectors) {
    const int at = k < end ? a_address(s, depth) : -1;
    TILE_VECTOR loaded = at < 0 ? TILE_VECTOR(0) : TILE_VECTOR(a_vectors[uint(at) / WIDTH]);
#ifdef EIGHT_WIDE
    if ((FLAGS & product_half_tail) != 0u && depth.w + WIDTH == channels)
      loaded.zw = uvec2(0); // not by weights of 0: it may be infinite
#endif
    return loaded;
  }
#ifdef EIGHT_WIDE
  float16_t e[8];
#else
  vec4 e;
#endif
  [[unroll]] for (uint i = 0; i < WIDTH; ++i) {
    const int at = k + i < end ? a_address(s, depth) : -1;
    e[i] = at < 0 ? ELEMENT(0) : ELEMENT(a[at]);
    depth = next_depth(depth);
  }
#ifdef EIGHT_WIDE
  return pack_vector(e);
#else
  return e;
#endif
}

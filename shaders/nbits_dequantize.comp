#version 450
// The weights of MatMulNBits as a matrix [N, K]: an invocation writes a word's codes. Columns [first_column, +
// columns).
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require
#include "nbits.glsl"

layout(local_size_x = 256) in;

layout(set = 0, binding = 4, std430) writeonly buffer output_buffer { T result[]; };

void main() {
  const uint index = flat_group() * 256u + gl_LocalInvocationID.x;
  if (index >= columns * column_words)
    return;
  const uint column = index / column_words, n = first_column + column;
  const uint k = (index - column * column_words) * WORD_DEPTHS;
  if (k >= K)
    return;
  const uint block = k >> block_shift;
  const float scale = float(scales[n * blocks + block]), zero = zero_of(n, block);
  const uint word = codes[n * column_words + k / WORD_DEPTHS];
  [[unroll]] for (uint part = 0u; part < WORD_DEPTHS / 4u; ++part) {
    const vec4 w = (codes_of(word, part) - zero) * scale;
    [[unroll]] for (uint i = 0u; i < 4u; ++i)
      if (k + part * 4u + i < K)
        result[column * K + k + part * 4u + i] = T(w[i]);
  }
}

#version 450
// Joins what attention of splits of the keys has written: Y = Σ e^(mᵢ − m) oᵢ / Σ e^(mᵢ − m) lᵢ, m the largest mᵢ. One
// invocation an element of Y.
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "activation.glsl"
#include "parameters/attention_join.h"

layout(local_size_x = 128) in;
layout(constant_id = 0) const bool EMPTY_IS_ZERO = false; // a row without keys is zero, not NaN

const uint AHEAD = 8; // splits that are on their way together

layout(set = 0, binding = 1, std430) readonly buffer partial_buffer { float partial[]; };
layout(set = 0, binding = 2, std430) writeonly buffer output_buffer { T y[]; };

void main() {
  const uint index = flat_group() * 128u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  const uint line = index / value_width, element = index - line * value_width, step = 2 + value_width;
  float top = -infinity, sum = 0.0, result = 0.0;
  for (uint first = 0; first < splits; first += AHEAD) {
    float tops[AHEAD], sums[AHEAD], values[AHEAD];
    [[unroll]] for (uint i = 0; i < AHEAD; ++i) {
      const uint at = (min(first + i, splits - 1) * all_rows + line) * step;
      tops[i] = partial[at];
      sums[i] = partial[at + 1];
      values[i] = partial[at + 2 + element];
    }
    float largest = top;
    [[unroll]] for (uint i = 0; i < AHEAD; ++i)
      largest = tops[i] > largest ? tops[i] : largest; // the last split once more changes nothing
    const float base = largest == -infinity ? 0.0 : largest, shrink = fast_exp(top - base);
    top = largest;
    sum *= shrink;
    result *= shrink;
    [[unroll]] for (uint i = 0; i < AHEAD; ++i)
      if (first + i < splits) {
        const float weight = fast_exp(tops[i] - base);
        sum = fma(weight, sums[i], sum);
        result = fma(weight, values[i], result);
      }
  }
  const uint head_index = line / rows, r = line - head_index * rows, share = r / queries;
  const uint b = head_index / kv_heads, head = (head_index - b * kv_heads) * sharing + share;
  const uint to = b * y_steps.x + head * y_steps.y + (r - share * queries) * y_steps.z + element;
  y[to] = T(EMPTY_IS_ZERO && sum == 0.0 ? 0.0 : result / sum);
}

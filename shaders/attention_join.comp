#version 450
// Joins what attention of splits of the keys has written (attention_splits.glsl). One invocation an element of Y.
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "parameters/attention_join.h"

layout(local_size_x = 128) in;
layout(constant_id = 0) const bool EMPTY_IS_ZERO = false; // a row without keys is zero, not NaN

layout(set = 0, binding = 1, std430) readonly buffer partial_buffer { float partial[]; };
layout(set = 0, binding = 2, std430) writeonly buffer output_buffer { T y[]; };

#include "attention_splits.glsl"

void main() {
  const uint index = flat_group() * 128u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  const uint line = index / value_width, element = index - line * value_width;
  const vec2 joined = join_splits(line, element, splits, all_rows, 2 + value_width);
  const uint head_index = line / rows, r = line - head_index * rows, share = r / queries;
  const uint b = head_index / kv_heads, head = (head_index - b * kv_heads) * sharing + share;
  const uint to = b * y_steps.x + head * y_steps.y + (r - share * queries) * y_steps.z + element;
  y[to] = T(EMPTY_IS_ZERO && joined.x == 0.0 ? 0.0 : joined.y / joined.x);
}

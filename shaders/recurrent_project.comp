#version 450
// The input's part of all gates of all steps of a recurrent layer: P[d] = X · W[d]ᵀ + biases, in float.
//
// A group computes 32 rows × 64 columns of one direction d; an invocation 4 × 4 of them.
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "parameters/recurrent_project.h"

layout(local_size_x = 128) in;
layout(constant_id = 0) const bool HAS_BIAS = false;

layout(set = 0, binding = 1, std430) readonly buffer input_buffer { T x[]; };
layout(set = 0, binding = 2, std430) readonly buffer weight_buffer { T w[]; };
layout(set = 0, binding = 3, std430) readonly buffer bias_buffer { T bias[]; }; // [directions][2][columns]
layout(set = 0, binding = 4, std430) writeonly buffer output_buffer { float projected[]; };

const uint DEPTH = 16;
shared float x_tile[DEPTH * 33]; // odd steps: no bank conflicts when written along the depth
shared float w_tile[DEPTH * 65];

void main() {
  const uint id = gl_LocalInvocationID.x, direction = gl_WorkGroupID.z;
  const uint row0 = gl_WorkGroupID.y * 32, column0 = gl_WorkGroupID.x * 64;
  const uint r = id / 16, c = id % 16; // rows r + 8 i, columns c + 16 j
  float sums[16];
  [[unroll]] for (uint i = 0; i < 16; ++i)
    sums[i] = 0.0;
  for (uint k0 = 0; k0 < depth; k0 += DEPTH) {
    const uint k = k0 + id % DEPTH;
    [[unroll]] for (uint i = 0; i < 4; ++i) {
      const uint line = i * 8 + id / DEPTH;
      x_tile[id % DEPTH * 33 + line] = row0 + line < rows && k < depth ? float(x[(row0 + line) * depth + k]) : 0.0;
    }
    [[unroll]] for (uint i = 0; i < 8; ++i) {
      const uint line = i * 8 + id / DEPTH;
      w_tile[id % DEPTH * 65 + line] =
          column0 + line < columns && k < depth ? float(w[(direction * columns + column0 + line) * depth + k]) : 0.0;
    }
    barrier();
    [[unroll]] for (uint d = 0; d < DEPTH; ++d) {
      float b[4];
      [[unroll]] for (uint j = 0; j < 4; ++j)
        b[j] = w_tile[d * 65 + c + 16 * j];
      [[unroll]] for (uint i = 0; i < 4; ++i) {
        const float a = x_tile[d * 33 + r + 8 * i];
        [[unroll]] for (uint j = 0; j < 4; ++j)
          sums[4 * i + j] = fma(a, b[j], sums[4 * i + j]);
      }
    }
    barrier();
  }
  [[unroll]] for (uint j = 0; j < 4; ++j) {
    const uint column = column0 + c + 16 * j;
    if (column >= columns)
      continue;
    float added = 0.0;
    if (HAS_BIAS) {
      added = float(bias[2 * direction * columns + column]);
      if (column < recurrent_bias)
        added += float(bias[(2 * direction + 1) * columns + column]);
    }
    [[unroll]] for (uint i = 0; i < 4; ++i) {
      const uint row = row0 + r + 8 * i;
      if (row < rows)
        projected[(direction * rows + row) * columns + column] = sums[4 * i + j] + added;
    }
  }
}

#version 450
// BatchNormalization by given statistics: y = (x − mean) · scale / √(variance + epsilon) + bias, all by channel.
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "parameters/batch_norm.h"

layout(local_size_x = 256) in;
const uint elements_each = 4u;

layout(set = 0, binding = 1, std430) readonly buffer source { T x[]; };
layout(set = 0, binding = 2, std430) readonly buffer scales { T scale[]; };
layout(set = 0, binding = 3, std430) readonly buffer biases { T bias[]; };
layout(set = 0, binding = 4, std430) readonly buffer means { T mean[]; };
layout(set = 0, binding = 5, std430) readonly buffer variances { T variance[]; };
layout(set = 0, binding = 6, std430) writeonly buffer target { T y[]; };

void main() {
  const uint first = flat_group() * 256u * elements_each + gl_LocalInvocationID.x;
  [[unroll]] for (uint e = 0u; e < elements_each; ++e) {
    const uint index = first + e * 256u;
    if (index >= count)
      return;
    const uint c = index / inner % channels;
    const float factor = float(scale[c]) / sqrt(float(variance[c]) + epsilon);
    y[index] = T(fma(float(x[index]) - float(mean[c]), factor, float(bias[c])));
  }
}

#version 450
// LRN: y = x / (bias + alpha / size · Σ x² over the channels around x's)^beta. One invocation an element.
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "float_math.glsl"
#include "parameters/lrn.h"

layout(local_size_x = 256) in;

layout(set = 0, binding = 1, std430) readonly buffer source { T x[]; };
layout(set = 0, binding = 2, std430) writeonly buffer target { T y[]; };

void main() {
  const uint index = flat_group() * 256u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  const uint channel = index / pixels % channels;
  const uint first = channel - min(channel, before), last = min(channels - 1, channel + behind);
  float sum = 0.0;
  for (uint c = first; c <= last; ++c) {
    const float v = float(x[index + c * pixels - channel * pixels]);
    sum = fma(v, v, sum);
  }
  y[index] = T(float(x[index]) / exact_pow(fma(factor, sum, bias), beta));
}

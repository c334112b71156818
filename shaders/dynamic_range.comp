#version 450
// DynamicQuantizeLinear's scale and zero point: the range of all elements and 0, in 255 steps. One group; NaN counts
// for nothing.
// Variants: f32
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#include "types.glsl"
#include "float_math.glsl"
#include "parameters/element_count.h"

const uint threads = 256u;
layout(local_size_x = 256) in;

layout(set = 0, binding = 1, std430) readonly buffer source { float x[]; };
layout(set = 0, binding = 2, std430) writeonly buffer scale_buffer { float scale[]; };
layout(set = 0, binding = 3, std430) writeonly buffer zero_buffer { uint8_t zero[]; };

shared float lowest[threads], highest[threads];

void main() {
  const uint id = gl_LocalInvocationID.x;
  float low = 0.0, high = 0.0;
  for (uint i = id; i < count; i += threads) {
    const float v = x[i];
    low = v < low ? v : low;
    high = v > high ? v : high;
  }
  lowest[id] = low;
  highest[id] = high;
  barrier();
  for (uint rest = threads / 2u; rest > 0u; rest /= 2u) {
    if (id < rest) {
      lowest[id] = lowest[id + rest] < lowest[id] ? lowest[id + rest] : lowest[id];
      highest[id] = highest[id + rest] > highest[id] ? highest[id + rest] : highest[id];
    }
    barrier();
  }
  if (id != 0u)
    return;
  low = lowest[0];
  high = highest[0];
  const float step = high == low ? 1.0 : exact_quotient(high - low, 255.0);
  const float z = exact_round(exact_quotient(-low, step));
  scale[0] = step;
  zero[0] = uint8_t(uint(z > 0.0 ? (z < 255.0 ? z : 255.0) : 0.0));
}

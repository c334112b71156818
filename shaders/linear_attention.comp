#version 450
// LinearAttention (src/ops/onnx/linear_attention.cpp): the columns of a state never meet, so an invocation has one of
// them, and runs through all steps. States are float32, in scratch memory. Constants: 0 flags
// (parameters/linear_attention.h).
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "activation.glsl"
#include "parameters/linear_attention.h"

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint flags = 0u;

layout(set = 0, binding = 1, std430) readonly buffer queries { T q[]; };
layout(set = 0, binding = 2, std430) readonly buffer key_rows { T k[]; };
layout(set = 0, binding = 3, std430) readonly buffer value_rows { T v[]; };
layout(set = 0, binding = 4, std430) readonly buffer past_states { T past[]; };
layout(set = 0, binding = 5, std430) readonly buffer decays { T decay[]; };
layout(set = 0, binding = 6, std430) readonly buffer betas { T beta[]; };
layout(set = 0, binding = 7, std430) writeonly buffer target { T y[]; };
layout(set = 0, binding = 8, std430) writeonly buffer present_states { T present[]; };
layout(set = 0, binding = 9, std430) buffer scratch { float state[]; };

bool has(uint flag) { return (flags & flag) != 0u; }

void main() {
  const uint index = flat_group() * 64u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  const uint cell = index / values, j = index - cell * values, base = cell * keys * values + j;
  const uint b = cell / heads, h = cell - b * heads;
  for (uint i = 0u; i < keys; ++i)
    state[base + i * values] = has(linear_past) ? float(past[base + i * values]) : 0.0;
  for (uint step = 0u; step < steps; ++step) {
    const uint row = b * steps + step, at = row * heads + h;
    float d = float(v[at * values + j]), seen = 0.0;
    if (has(linear_decay) || has(linear_beta))
      for (uint i = 0u; i < keys; ++i) {
        float s = state[base + i * values];
        if (has(linear_decay)) {
          s *= exact_exp(float(decay[has(linear_decay_rows) ? at * keys + i : at]));
          state[base + i * values] = s;
        }
        seen += s * float(k[at * keys + i]);
      }
    if (has(linear_beta))
      d = (d - seen) * float(beta[has(linear_shared_beta) ? row : at]);
    for (uint i = 0u; i < keys; ++i)
      state[base + i * values] += float(k[at * keys + i]) * d;
    for (uint g = 0u; g < group; ++g) {
      const uint query = at * group + g;
      float sum = 0.0;
      for (uint i = 0u; i < keys; ++i)
        sum += float(q[query * keys + i]) * state[base + i * values];
      y[query * values + j] = T(sum * scale);
    }
  }
  if (has(linear_present))
    for (uint i = 0u; i < keys; ++i)
      present[base + i * values] = T(state[base + i * values]);
}

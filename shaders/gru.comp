#version 450
// A GRU whose reset gate comes before the product with R (linear_before_reset 0): all steps of one direction and batch
// row, from the projected input. A group has all units, since the candidates of each need the gates of all; an
// invocation has some of them. Constants: 0 invocations; 1 units; 2 flags (parameters/recurrent_flags.h).
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "activation.glsl"
#include "parameters/gru.h"
#include "parameters/recurrent_flags.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 128;
layout(constant_id = 1) const uint HIDDEN = 64;
layout(constant_id = 2) const uint FLAGS = 0;

// [d][row of X][3 · HIDDEN], biases added
layout(set = 0, binding = 1, std430) readonly buffer projected_buffer { float projected[]; };
layout(set = 0, binding = 2, std430) readonly buffer weight_buffer { T weights[]; };          // [d][3 · HIDDEN][HIDDEN]
layout(set = 0, binding = 3, std430) readonly buffer initial_h_buffer { T initial_h[]; };
layout(set = 0, binding = 4, std430) writeonly buffer output_buffer { T y[]; };
layout(set = 0, binding = 5, std430) writeonly buffer last_h_buffer { T y_h[]; };

shared float state[HIDDEN];
shared float reset_state[HIDDEN]; // r ∘ h
shared float update[HIDDEN];      // z

float limited(float x) {
  return x < -clip ? -clip : (x > clip ? clip : x);
}

#define PRODUCT(name, vector)                              \
  float name(uint row) {                                   \
    float sum = 0.0;                                       \
    for (uint k = 0; k < HIDDEN; ++k)                      \
      sum = fma(float(weights[row * HIDDEN + k]), vector[k], sum); \
    return sum;                                            \
  }
PRODUCT(with_state, state)
PRODUCT(with_reset_state, reset_state)

void main() {
  const uint id = gl_LocalInvocationID.x, b = gl_WorkGroupID.x, d = gl_WorkGroupID.y;
  // among the states of the operands
  const uint kept = (batch_first != 0 ? b * directions + d : d * batch + b) * HIDDEN;
  for (uint j = id; j < HIDDEN; j += THREADS)
    state[j] = (FLAGS & recurrent_initial_h) != 0u ? float(initial_h[kept + j]) : 0.0;
  barrier();
  for (uint step = 0; step < steps; ++step) {
    const uint t = ((reverse >> d) & 1u) != 0u ? steps - 1 - step : step;
    const uint x = (d * steps * batch + (batch_first != 0 ? b * steps + t : t * batch + b)) * 3 * HIDDEN;
    for (uint j = id; j < HIDDEN; j += THREADS) {
      update[j] = exact_sigmoid(limited(projected[x + j] + with_state(d * 3 * HIDDEN + j)));
      const float r = exact_sigmoid(limited(projected[x + HIDDEN + j] + with_state(d * 3 * HIDDEN + HIDDEN + j)));
      reset_state[j] = r * state[j];
    }
    barrier();
    for (uint j = id; j < HIDDEN; j += THREADS) {
      const float fresh = exact_tanh(limited(projected[x + 2 * HIDDEN + j]
          + with_reset_state(d * 3 * HIDDEN + 2 * HIDDEN + j)));
      const float h = (1.0 - update[j]) * fresh + update[j] * state[j];
      state[j] = h;
      if ((FLAGS & recurrent_y) != 0u)
        y[(batch_first != 0 ? (b * steps + t) * directions + d : (t * directions + d) * batch + b) * HIDDEN + j] = T(h);
      if (step + 1 == steps && (FLAGS & recurrent_last_h) != 0u)
        y_h[kept + j] = T(h);
    }
    barrier();
  }
}

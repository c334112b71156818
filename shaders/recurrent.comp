#version 450
// Steps of a recurrent layer (LSTM, GRU, RNN) from the projected input: h = cell(projected + h · Rᵀ), for one direction
// and BATCH rows of the batch a group.
//
// A team of 16 invocations multiplies the state with the rows of R of all gates of one unit and applies the cell. Large
// layers run one step a launch, their units spread over groups, the state in scratch (two buffers in turn). Small ones
// run all steps in one launch (PERSISTENT): one group has all units, and the state stays in shared memory.
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "activation.glsl"
#include "parameters/recurrent.h"
#include "parameters/recurrent_flags.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 128;
layout(constant_id = 1) const uint GATES = 4; // 4: LSTM (i o f c), 3: GRU (z r h), 1: RNN
layout(constant_id = 2) const uint BATCH = 1; // GATES · BATCH ≤ 16
layout(constant_id = 3) const uint HIDDEN = 64;
layout(constant_id = 4) const bool PERSISTENT = false;
layout(constant_id = 5) const uint FLAGS = 0;

const bool VECTORS = (FLAGS & recurrent_vectors) != 0u;
const bool HAS_BIAS = (FLAGS & recurrent_bias) != 0u;
const bool HAS_H = (FLAGS & recurrent_initial_h) != 0u;
const bool HAS_C = (FLAGS & recurrent_initial_c) != 0u;
const bool WRITES_Y = (FLAGS & recurrent_y) != 0u;
const bool WRITES_H = (FLAGS & recurrent_last_h) != 0u;
const bool WRITES_C = (FLAGS & recurrent_last_c) != 0u;
const bool INPUT_FORGET = (FLAGS & recurrent_input_forget) != 0u;
const bool RELU = (FLAGS & recurrent_relu) != 0u;

const uint LANES = 16, TEAMS = THREADS / LANES, SUMS = GATES * BATCH;
const uint WIDTH = (HIDDEN + 3) / 4;

// [d][row of X][GATES · HIDDEN]
layout(set = 0, binding = 1, std430) readonly buffer projected_buffer { float projected[]; };
// [d][GATES · HIDDEN][HIDDEN]
layout(set = 0, binding = 2, std430) readonly buffer weight_buffer { T weights[]; };
layout(set = 0, binding = 2, std430) readonly buffer weight_vector_buffer { T4 weights4[]; };
layout(set = 0, binding = 3, std430) readonly buffer bias_buffer { T bias[]; };
layout(set = 0, binding = 4, std430) readonly buffer initial_h_buffer { T initial_h[]; };
layout(set = 0, binding = 5, std430) readonly buffer initial_c_buffer { T initial_c[]; };
// [2][d][batch][HIDDEN], then [d][batch][HIDDEN] of C
layout(set = 0, binding = 6, std430) buffer state_buffer { float states[]; };
layout(set = 0, binding = 7, std430) writeonly buffer output_buffer { T y[]; };
layout(set = 0, binding = 8, std430) writeonly buffer last_h_buffer { T y_h[]; };
layout(set = 0, binding = 9, std430) writeonly buffer last_c_buffer { T y_c[]; };

shared vec4 state[(PERSISTENT ? 2 : 1) * BATCH * WIDTH];
shared float parts[SUMS * THREADS];
shared float totals[SUMS * TEAMS];

vec4 load_weight(uint row, uint column) {
  if (VECTORS)
    return vec4(weights4[(row * HIDDEN + column) / 4]);
  vec4 e = vec4(0.0);
  [[unroll]] for (uint i = 0; i < 4; ++i)
    if (column + i < HIDDEN)
      e[i] = float(weights[row * HIDDEN + column + i]);
  return e;
}

float limited(float x) {
  return x < -clip ? -clip : (x > clip ? clip : x);
}

/// The new state of unit j of a batch row from its `sums` (of the state's part), its row of `projected`, and its old
/// state.
float cell(uint d, uint j, uint sums, uint row, float old, inout float memory) {
  if (GATES == 4) {
    const float i = exact_sigmoid(limited(projected[row + j] + totals[sums]));
    const float f = INPUT_FORGET ? 1.0 - i : exact_sigmoid(limited(projected[row + 2 * HIDDEN + j] + totals[sums + 2]));
    memory = f * memory + i * exact_tanh(limited(projected[row + 3 * HIDDEN + j] + totals[sums + 3]));
    const float o = exact_sigmoid(limited(projected[row + HIDDEN + j] + totals[sums + 1]));
    return o * exact_tanh(memory); // not limited, as in the reference
  }
  if (GATES == 3) { // with linear_before_reset
    const float z = exact_sigmoid(limited(projected[row + j] + totals[sums]));
    const float r = exact_sigmoid(limited(projected[row + HIDDEN + j] + totals[sums + 1]));
    const float b = HAS_BIAS ? float(bias[(2 * d + 1) * 3 * HIDDEN + 2 * HIDDEN + j]) : 0.0;
    const float fresh = exact_tanh(limited(projected[row + 2 * HIDDEN + j] + r * (totals[sums + 2] + b)));
    return (1.0 - z) * fresh + z * old;
  }
  const float x = limited(projected[row + j] + totals[sums]);
  return RELU ? activate(scalar_relu, x, 0.0, 0.0) : exact_tanh(x);
}

/// One unit's step; all invocations of the group take part. `from`: the state's place in shared memory.
void unit_step(uint d, uint b0, uint j, uint step, uint from) {
  const uint id = gl_LocalInvocationID.x, team = id / LANES, lane = id % LANES;
  float sums[SUMS];
  [[unroll]] for (uint i = 0; i < SUMS; ++i)
    sums[i] = 0.0;
  if (j < HIDDEN)
    for (uint k = lane; k < WIDTH; k += LANES)
      [[unroll]] for (uint g = 0; g < GATES; ++g) {
        const vec4 w = load_weight((d * GATES + g) * HIDDEN + j, 4 * k);
        [[unroll]] for (uint r = 0; r < BATCH; ++r)
          sums[r * GATES + g] += dot(w, state[from + r * WIDTH + k]);
      }
  [[unroll]] for (uint i = 0; i < SUMS; ++i)
    parts[i * THREADS + id] = sums[i];
  barrier();
  if (lane < SUMS) {
    float total = 0.0;
    [[unroll]] for (uint i = 0; i < LANES; ++i)
      total += parts[lane * THREADS + team * LANES + i];
    totals[team * SUMS + lane] = total;
  }
  barrier();
  const uint b = b0 + lane;
  if (lane >= BATCH || b >= batch || j >= HIDDEN)
    return;
  const uint t = ((reverse >> d) & 1u) != 0u ? steps - 1 - step : step;
  const uint row = batch_first != 0 ? b * steps + t : t * batch + b;
  const uint place = (d * batch + b) * HIDDEN + j, all = directions * batch * HIDDEN;
  // among the states of the operands
  const uint kept = (batch_first != 0 ? b * directions + d : d * batch + b) * HIDDEN + j;
  float memory = 0.0;
  if (GATES == 4)
    memory = step > 0 ? states[2 * all + place] : (HAS_C ? float(initial_c[kept]) : 0.0);
  const float old = state[from + lane * WIDTH + j / 4][j % 4];
  const float h = cell(d, j, team * SUMS + lane * GATES, (d * steps * batch + row) * GATES * HIDDEN, old, memory);
  if (PERSISTENT)
    state[BATCH * WIDTH - from + lane * WIDTH + j / 4][j % 4] = h;
  else
    states[((step + 1) & 1u) * all + place] = h;
  if (GATES == 4)
    states[2 * all + place] = memory;
  if (WRITES_Y)
    y[(batch_first != 0 ? (b * steps + t) * directions + d : (t * directions + d) * batch + b) * HIDDEN + j] = T(h);
  if (step + 1 == steps) {
    if (WRITES_H)
      y_h[kept] = T(h);
    if (WRITES_C)
      y_c[kept] = T(memory);
  }
}

void main() {
  const uint id = gl_LocalInvocationID.x, d = gl_WorkGroupID.y, b0 = gl_WorkGroupID.z * BATCH;
  const uint all = directions * batch * HIDDEN;
  for (uint i = id; i < BATCH * WIDTH; i += THREADS) {
    const uint r = i / WIDTH, j = 4 * (i - r * WIDTH), b = b0 + r;
    vec4 e = vec4(0.0);
    [[unroll]] for (uint u = 0; u < 4; ++u)
      if (b < batch && j + u < HIDDEN) {
        if (first_step > 0)
          e[u] = states[(first_step & 1u) * all + (d * batch + b) * HIDDEN + j + u];
        else if (HAS_H)
          e[u] = float(initial_h[(batch_first != 0 ? b * directions + d : d * batch + b) * HIDDEN + j + u]);
      }
    state[i] = e;
    if (PERSISTENT)
      state[BATCH * WIDTH + i] = vec4(0.0); // the padding after HIDDEN is never written again
  }
  barrier();
  uint from = 0;
  for (uint s = 0; s < step_count; ++s) {
    for (uint j = PERSISTENT ? 0 : gl_WorkGroupID.x * TEAMS; j < HIDDEN; j += PERSISTENT ? TEAMS : HIDDEN) {
      unit_step(d, b0, j + id / LANES, first_step + s, from);
      barrier();
    }
    from = BATCH * WIDTH - from;
  }
}

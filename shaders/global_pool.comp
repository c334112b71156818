#version 450
// Pooling of whole planes to one element: maximum, average or p-norm, any layout.
//
// A group reduces THREADS / TEAM channels (four times as many as VECTORS, channels last): a team of TEAM invocations
// adds up every TEAM-th pixel, then its parts are joined in shared memory. Neighbouring invocations are neighbours in
// memory: pixels of a plane, or channels if they come last. Invariants: THREADS and TEAM are powers of two, TEAM ≤
// THREADS.
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "pool.glsl"
#include "parameters/global_pool.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 128;
layout(constant_id = 1) const uint TEAM = 16;
layout(constant_id = 2) const uint KIND = pool_kind_average;
layout(constant_id = 3) const bool VECTORS = false;
layout(constant_id = 4) const uint ORDER_BITS = 0; // p of a p-norm

layout(set = 0, binding = 1, std430) readonly buffer input_buffer { T x[]; };
layout(set = 0, binding = 1, std430) readonly buffer input_vector_buffer { T4 x4[]; };
layout(set = 0, binding = 2, std430) writeonly buffer output_buffer { T y[]; };
layout(set = 0, binding = 2, std430) writeonly buffer output_vector_buffer { T4 y4[]; };

const uint TEAMS = THREADS / TEAM;
shared vec4 parts[THREADS];

vec4 read_input(uint at) {
  return VECTORS ? vec4(x4[at / 4]) : vec4(float(x[at]), 0.0, 0.0, 0.0);
}

void main() {
  const uint id = gl_LocalInvocationID.x;
  const uint lane = pixels_first != 0 ? id % TEAM : id / TEAMS, team = pixels_first != 0 ? id / TEAM : id % TEAMS;
  const uint plane = flat_group() * TEAMS + team;
  const float order = uintBitsToFloat(ORDER_BITS);
  vec4 sum = pool_start(KIND);
  if (plane < count) {
    const uint image = plane / channels;
    const uint base = image * in_image + (plane - image * channels) * (VECTORS ? 4 : 1) * in_channel;
    uint p = lane;
    while (p + 3 * TEAM < pixels) {
      vec4 part = pool_start(KIND); // of 256 pixels: errors grow with the number of terms
      for (uint n = 0; n < 64 && p + 3 * TEAM < pixels; ++n, p += 4 * TEAM) {
        vec4 values[4];
        [[unroll]] for (uint i = 0; i < 4; ++i)
          values[i] = read_input(base + (p + i * TEAM) * in_pixel);
        [[unroll]] for (uint i = 0; i < 4; ++i)
          part = pool_step(KIND, part, values[i], order);
      }
      sum = pool_join(KIND, sum, part);
    }
    for (; p < pixels; p += TEAM)
      sum = pool_step(KIND, sum, read_input(base + p * in_pixel), order);
  }
  const uint slot = team * TEAM + lane;
  parts[slot] = sum;
  barrier();
  for (uint half_team = TEAM / 2; half_team > 0; half_team /= 2) {
    if (lane < half_team)
      parts[slot] = pool_join(KIND, parts[slot], parts[slot + half_team]);
    barrier();
  }
  if (lane != 0 || plane >= count)
    return;
  sum = parts[slot];
  if (KIND == pool_kind_average)
    sum = exact_quotients(sum, float(pixels));
  sum = pool_finish(KIND, sum, order);
  if (VECTORS)
    y4[plane] = T4(sum);
  else
    y[plane] = T(sum.x);
}

#version 450
// Attention's scores Q · Kᵀ for those who ask for them: scaled, after softcap, after the masks, or as the weights of
// softmax. One invocation a score; of weights one a row, which goes over its keys three times. Constants: 0 what is
// given; 1 flags (parameters/attention_scores.h).
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "float_math.glsl"
#include "parameters/attention_scores.h"

layout(local_size_x = 128) in;
layout(constant_id = 0) const uint given = scores_scaled;
layout(constant_id = 1) const uint flags = 0u;

layout(set = 0, binding = 1, std430) readonly buffer query_buffer { T q[]; };
layout(set = 0, binding = 2, std430) readonly buffer key_buffer { T k[]; };
layout(set = 0, binding = 3, std430) readonly buffer mask_buffer { T mask[]; };
layout(set = 0, binding = 3, std430) readonly buffer mask_word_buffer { uint mask_words[]; };
layout(set = 0, binding = 4, std430) readonly buffer limit_buffer { uvec2 limits[]; };
layout(set = 0, binding = 5, std430) writeonly buffer target { T y[]; };

float scaled(uint b, uint h, uint s, uint t) {
  const uint query = b * q_steps.x + h * q_steps.y + s * q_steps.z,
      key = b * k_steps.x + h / sharing * k_steps.y + t * k_steps.z;
  float sum = 0.0;
  for (uint i = 0u; i < width; ++i)
    sum = fma(float(q[query + i]), float(k[key + i]), sum);
  return sum * scale;
}

float capped(float score) {
  return softcap > 0.0 ? softcap * exact_tanh(score / softcap) : score;
}

/// What the masks add.
float added(uint b, uint h, uint s, uint t) {
  int last = int(s) + causal_offset;
  if ((flags & scores_limits) != 0u) {
    const int limit = int(limits[b].x);
    if (int(t) >= limit)
      return -infinity;
    last = int(s) + limit - int(queries);
  }
  if ((flags & scores_causal) != 0u && int(t) > last)
    return -infinity;
  if ((flags & scores_mask) == 0u)
    return 0.0;
  if (t >= mask_keys)
    return -infinity;
  const uint at = b * mask_steps.x + h * mask_steps.y + s * mask_steps.z + t * mask_steps.w;
  if ((flags & scores_mask_bytes) != 0u)
    return ((mask_words[at / 4u] >> (8u * (at % 4u))) & 255u) != 0u ? 0.0 : -infinity;
  return float(mask[at]);
}

float masked(uint b, uint h, uint s, uint t) {
  const float add = added(b, h, s, t);
  return add == -infinity ? add : capped(scaled(b, h, s, t)) + add;
}

void put_weights(uint row, uint b, uint h, uint s) {
  float top = -infinity, sum = 0.0;
  for (uint t = 0u; t < keys; ++t) {
    const float score = masked(b, h, s, t);
    top = score > top ? score : top;
  }
  for (uint t = 0u; t < keys; ++t) {
    const float score = masked(b, h, s, t);
    sum += score == -infinity ? 0.0 : exact_exp(score - top);
  }
  for (uint t = 0u; t < keys; ++t) {
    const float score = masked(b, h, s, t);
    y[row * keys + t] = T(score == -infinity || sum == 0.0 ? 0.0 : exact_exp(score - top) / sum);
  }
}

void main() {
  const uint index = flat_group() * 128u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  const uint row = given == scores_weights ? index : index / keys, t = index - row * keys;
  const uint s = row % queries, h = row / queries % heads, b = row / (queries * heads);
  if (given == scores_weights)
    put_weights(row, b, h, s);
  else
    y[index] = T(given == scores_scaled ? scaled(b, h, s, t)
        : (given == scores_capped ? capped(scaled(b, h, s, t)) : masked(b, h, s, t)));
}

#version 450
// Attention of few queries, bound by reading K and V once: a group computes one row of Y (attention_lanes.comp: by
// shuffles; attention.comp: many rows).
//
// It walks over blocks of as many keys as it has invocations. LANES neighbouring invocations share a key, so that its
// row is read in one piece; their products meet in shared memory, where invocation t finishes the score of key t. Then
// each invocation adds up a vector of V's columns over every SLICES-th key, the first of which it has loaded before.
// Sums are scaled when the largest score grows, and splits of the keys are joined, as in attention.comp. The first
// `past` keys and values may have buffers of their own, of float32 too beside float16.
//
// Invariants: THREADS, LANES and SLICES are powers of two, THREADS ≥ 32, LANES ≤ KEY_VECTORS, SLICES · VALUE_VECTORS ≤
// THREADS.
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "attention_weights.glsl"
#include "parameters/attention_row.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 256;
layout(constant_id = 1) const uint LANES = 8;
layout(constant_id = 2) const uint KEY_VECTORS = 8;   // of a row of Q and K
layout(constant_id = 3) const uint VALUE_VECTORS = 8; // of a row of V and Y
layout(constant_id = 4) const uint SLICES = 32;
layout(constant_id = 5) const uint FLAGS = 0;

const bool HAS_MASK = (FLAGS & attention_mask) != 0u;
const bool MASK_BYTES = (FLAGS & attention_mask_bytes) != 0u;
const bool CAUSAL = (FLAGS & attention_causal) != 0u;
const bool SPLIT = (FLAGS & attention_split) != 0u;
const bool SKIPS = (FLAGS & attention_skips) != 0u;
const bool PAST = (FLAGS & attention_past) != 0u;
const bool WIDE_PAST = (FLAGS & attention_wide_past) != 0u;

#ifdef TROUPE_f16
#define VECTOR uvec4
const uint WIDTH = 8;
#else
#define VECTOR vec4
const uint WIDTH = 4;
#endif
const uint AHEAD = 4; // vectors of V on their way to an invocation

layout(set = 0, binding = 1, std430) readonly buffer query_buffer { VECTOR q[]; };
layout(set = 0, binding = 2, std430) readonly buffer key_buffer { VECTOR k[]; };
layout(set = 0, binding = 3, std430) readonly buffer value_buffer { VECTOR v[]; };
layout(set = 0, binding = 4, std430) readonly buffer mask_buffer { T mask[]; };
layout(set = 0, binding = 4, std430) readonly buffer mask_word_buffer { uint mask_words[]; };
layout(set = 0, binding = 5, std430) writeonly buffer output_buffer { VECTOR y[]; };
layout(set = 0, binding = 5, std430) writeonly buffer partial_buffer { float partial[]; }; // [splits][rows][2 + width]
layout(set = 0, binding = 6, std430) readonly buffer past_key_buffer { VECTOR past_k[]; };
layout(set = 0, binding = 7, std430) readonly buffer past_value_buffer { VECTOR past_v[]; };
#ifdef TROUPE_f16
layout(set = 0, binding = 6, std430) readonly buffer wide_past_key_buffer { vec4 wide_past_k[]; };
layout(set = 0, binding = 7, std430) readonly buffer wide_past_value_buffer { vec4 wide_past_v[]; };
#endif

const uint PITCH = THREADS + 4; // LANES neighbours write to different banks
const uint DOTS = LANES * PITCH, SUMS = (WIDTH + 1) * THREADS;
shared float work[DOTS > SUMS ? DOTS : SUMS]; // [LANES][PITCH] products, then [WIDTH + 1][THREADS] sums
shared float scores[THREADS];
shared float tops[32];
shared float query[KEY_VECTORS * WIDTH];

uint key_start, value_start, past_key_start, past_value_start; // of the group's head, in elements

#ifdef TROUPE_f16
/// Finite values stay finite, as troupe.ToFloat16 does it.
vec4 in_range(vec4 v) {
  return mix(v, clamp(v, -65504.0, 65504.0), lessThan(abs(v), vec4(infinity)));
}

uvec4 narrowed(vec4 first, vec4 second) {
  const vec4 a = in_range(first), b = in_range(second);
  return uvec4(packFloat2x16(f16vec2(a.xy)), packFloat2x16(f16vec2(a.zw)), packFloat2x16(f16vec2(b.xy)),
               packFloat2x16(f16vec2(b.zw)));
}
#endif

VECTOR load_key(uint t, uint i) {
#ifdef TROUPE_f16
  if (WIDE_PAST && t < past) {
    const uint at = (past_key_start + t * past_k_steps.z) / 4 + 2 * i;
    return narrowed(wide_past_k[at], wide_past_k[at + 1]);
  }
#endif
  if (PAST && t < past)
    return past_k[(past_key_start + t * past_k_steps.z) / WIDTH + i];
  return k[(key_start + (t - past) * k_steps.z) / WIDTH + i];
}

VECTOR load_value(uint t, uint i) {
#ifdef TROUPE_f16
  if (WIDE_PAST && t < past) {
    const uint at = (past_value_start + t * past_v_steps.z) / 4 + 2 * i;
    return narrowed(wide_past_v[at], wide_past_v[at + 1]);
  }
#endif
  if (PAST && t < past)
    return past_v[(past_value_start + t * past_v_steps.z) / WIDTH + i];
  return v[(value_start + (t - past) * v_steps.z) / WIDTH + i];
}

void unpack(VECTOR from, out float e[WIDTH]) {
#ifdef TROUPE_f16
  [[unroll]] for (uint i = 0; i < 4; ++i) {
    const vec2 pair = unpackHalf2x16(from[i]);
    e[2 * i] = pair.x;
    e[2 * i + 1] = pair.y;
  }
#else
  [[unroll]] for (uint i = 0; i < 4; ++i)
    e[i] = from[i];
#endif
}

VECTOR pack(float e[WIDTH]) {
#ifdef TROUPE_f16
  return uvec4(packFloat2x16(f16vec2(e[0], e[1])), packFloat2x16(f16vec2(e[2], e[3])),
               packFloat2x16(f16vec2(e[4], e[5])), packFloat2x16(f16vec2(e[6], e[7])));
#else
  return vec4(e[0], e[1], e[2], e[3]);
#endif
}

/// The score of key t with its mask.
float masked(float score, uint t, uint mask_start) {
  if (!HAS_MASK)
    return score;
  if (t >= mask_keys)
    return -infinity;
  const uint at = mask_start + t * mask_steps.w;
  if (MASK_BYTES)
    return ((mask_words[at / 4] >> (8 * (at % 4))) & 255u) != 0u ? score : -infinity;
  const float added = float(mask[at]);
  return SKIPS && added == -infinity ? -infinity : score + added;
}

/// Leaves the products of the query with keys [t0, end), at most THREADS, in `work`.
void multiply_keys(uint t0, uint end, uint id) {
  const uint lane = id % LANES, first = id / LANES;
  float sums[LANES];
  [[unroll]] for (uint r = 0; r < LANES; ++r)
    sums[r] = 0.0;
  for (uint i = lane; i < KEY_VECTORS; i += LANES) {
    VECTOR next[LANES];
    [[unroll]] for (uint r = 0; r < LANES; ++r)
      next[r] = load_key(min(t0 + r * (THREADS / LANES) + first, end - 1), i);
    [[unroll]] for (uint r = 0; r < LANES; ++r) {
      float e[WIDTH];
      unpack(next[r], e);
      [[unroll]] for (uint j = 0; j < WIDTH; ++j)
        sums[r] = fma(e[j], query[i * WIDTH + j], sums[r]);
    }
  }
  [[unroll]] for (uint r = 0; r < LANES; ++r)
    work[lane * PITCH + r * (THREADS / LANES) + first] = sums[r];
}

/// The largest of `scores` and `top`, for all invocations.
float largest_score(float top, uint id) {
  if (id < 32) {
    float largest = -infinity;
    for (uint t = id; t < THREADS; t += 32)
      largest = scores[t] > largest ? scores[t] : largest;
    tops[id] = largest;
  }
  barrier();
  [[unroll]] for (uint i = 0; i < 32; ++i)
    top = tops[i] > top ? tops[i] : top;
  return top;
}

void main() {
  const uint id = gl_LocalInvocationID.x, row = flat_group();
  if (row >= rows)
    return;
  const uint head_row = row / queries, s = row - head_row * queries, b = head_row / heads;
  const uint head = head_row - b * heads, kv_head = head / sharing;
  key_start = k_steps.w + b * k_steps.x + kv_head * k_steps.y;
  value_start = v_steps.w + b * v_steps.x + kv_head * v_steps.y;
  past_key_start = b * past_k_steps.x + kv_head * past_k_steps.y;
  past_value_start = b * past_v_steps.x + kv_head * past_v_steps.y;
  const uint mask_start = b * mask_steps.x + head * mask_steps.y + s * mask_steps.z;

  for (uint i = id; i < KEY_VECTORS; i += THREADS) {
    float e[WIDTH];
    unpack(q[(q_steps.w + b * q_steps.x + head * q_steps.y + s * q_steps.z) / WIDTH + i], e);
    [[unroll]] for (uint j = 0; j < WIDTH; ++j)
      query[i * WIDTH + j] = e[j] * scale;
  }
  barrier();

  uint begin = 0, end = keys;
  if (CAUSAL)
    end = uint(clamp(int(s) + causal_offset + 1, 0, int(keys)));
  if (SPLIT) {
    begin = gl_WorkGroupID.z * split_keys;
    end = min(end, begin + split_keys);
  }

  const uint column = id % VALUE_VECTORS, slice = id / VALUE_VECTORS;
  float top = -infinity, sum = 0.0, o[WIDTH];
  [[unroll]] for (uint j = 0; j < WIDTH; ++j)
    o[j] = 0.0;
  for (uint t0 = begin; t0 < end; t0 += THREADS) {
    const uint stop = min(end, t0 + THREADS);
    uint t = slice < SLICES ? t0 + slice : stop;
    VECTOR ahead[AHEAD];
    [[unroll]] for (uint u = 0; u < AHEAD; ++u)
      ahead[u] = load_value(min(t + u * SLICES, stop - 1), column);

    multiply_keys(t0, stop, id);
    barrier();
    float score = -infinity;
    if (t0 + id < stop) {
      score = 0.0;
      [[unroll]] for (uint lane = 0; lane < LANES; ++lane)
        score += work[lane * PITCH + id];
      score = masked(score, t0 + id, mask_start);
    }
    scores[id] = score;
    barrier();

    const float largest = largest_score(top, id);
    const float base = base_of(largest);
    const float shrink = weight_of(top - base);
    top = largest;
    sum *= shrink;
    [[unroll]] for (uint j = 0; j < WIDTH; ++j)
      o[j] *= shrink;
    while (t < stop) {
      [[unroll]] for (uint u = 0; u < AHEAD; ++u)
        if (t + u * SLICES < stop) {
          const float weight = weight_of(scores[t + u * SLICES - t0] - base);
          sum += weight;
          float e[WIDTH];
          unpack(ahead[u], e);
          [[unroll]] for (uint j = 0; j < WIDTH; ++j)
            if (!SKIPS || weight != 0.0)
              o[j] = fma(weight, e[j], o[j]);
        }
      t += AHEAD * SLICES;
      if (t < stop)
        [[unroll]] for (uint u = 0; u < AHEAD; ++u)
          ahead[u] = load_value(min(t + u * SLICES, stop - 1), column);
    }
  }

  [[unroll]] for (uint j = 0; j < WIDTH; ++j)
    work[j * THREADS + id] = o[j];
  work[WIDTH * THREADS + id] = sum;
  barrier();
  for (uint half_of = SLICES / 2; half_of > 0; half_of /= 2) {
    if (slice < half_of)
      [[unroll]] for (uint j = 0; j <= WIDTH; ++j)
        work[j * THREADS + id] += work[j * THREADS + id + half_of * VALUE_VECTORS];
    barrier();
  }
  if (slice > 0)
    return;
  [[unroll]] for (uint j = 0; j < WIDTH; ++j)
    o[j] = work[j * THREADS + id];
  sum = work[WIDTH * THREADS + id];
  if (SPLIT) {
    const uint to = (gl_WorkGroupID.z * rows + row) * (2 + value_width);
    if (column == 0) {
      partial[to] = top;
      partial[to + 1] = sum;
    }
    [[unroll]] for (uint j = 0; j < WIDTH; ++j)
      partial[to + 2 + column * WIDTH + j] = o[j];
    return;
  }
  const float factor = SKIPS && sum == 0.0 ? 0.0 : 1.0 / sum;
  [[unroll]] for (uint j = 0; j < WIDTH; ++j)
    o[j] *= factor;
  y[(b * y_steps.x + head * y_steps.y + s * y_steps.z) / WIDTH + column] = pack(o);
}

// Attention of ROWS rows of Y whose queries share keys, by a group: the keys that it sees are read once, for all the
// rows.
//
// LANES neighbouring invocations of a subgroup are a slot, which has AHEAD keys at a time: all their vectors of K and V
// are on their way before the first is used, so that memory is waited for once in THREADS / LANES · AHEAD keys. A slot
// adds up a key's product by shuffles, and keeps the largest score and the sums of its own keys; the slots of a
// subgroup are joined by shuffles, subgroups in shared memory, always in the same order. The first `past` keys and
// values may have buffers of their own, of float32 too beside float16.
//
// A kernel calls, in this order, find_rows, fetch_block for the first keys, ask_for_queries and attend; then barrier(),
// and join_subgroups for each element of each row. A decoder runs it once a layer, when its code is in no cache:
// ONE_BLOCK leaves out what more than BLOCK keys need.
//
// Invariants: LANES is a power of two, at most 8 and at most a subgroup; THREADS is whole subgroups, SUBGROUPS of them.
#ifndef TROUPE_ATTENTION_LANES
#define TROUPE_ATTENTION_LANES

#include "types.glsl"
#include "common.glsl"
#include "attention_weights.glsl"
#include "parameters/attention_row.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 256;
layout(constant_id = 1) const uint SUBGROUPS = 8;
layout(constant_id = 2) const uint LANES = 8;
layout(constant_id = 3) const uint AHEAD = 4;
layout(constant_id = 4) const uint ROWS = 1;
layout(constant_id = 5) const uint KEY_VECTORS = 8;   // of a row of Q and K
layout(constant_id = 6) const uint VALUE_VECTORS = 8; // of a row of V and Y
layout(constant_id = 7) const uint FLAGS = 0;

const bool HAS_MASK = (FLAGS & attention_mask) != 0u;
const bool MASK_BYTES = (FLAGS & attention_mask_bytes) != 0u;
const bool CAUSAL = (FLAGS & attention_causal) != 0u;
const bool SKIPS = (FLAGS & attention_skips) != 0u;
const bool PAST = (FLAGS & attention_past) != 0u;
const bool WIDE_PAST = (FLAGS & attention_wide_past) != 0u;
const bool ONE_BLOCK = (FLAGS & attention_one_block) != 0u;

#ifdef TROUPE_f16
#define VECTOR uvec4
const uint WIDTH = 8;
const uint WORDS = WIDE_PAST ? 2 : 1; // of four floats, or of eight halves
#else
#define VECTOR vec4
const uint WIDTH = 4;
const uint WORDS = 1;
#endif

layout(set = 0, binding = 1, std430) readonly buffer query_buffer { VECTOR q[]; };
layout(set = 0, binding = 2, std430) readonly buffer key_buffer { VECTOR k[]; };
layout(set = 0, binding = 3, std430) readonly buffer value_buffer { VECTOR v[]; };
layout(set = 0, binding = 4, std430) readonly buffer mask_buffer { T mask[]; };
layout(set = 0, binding = 4, std430) readonly buffer mask_word_buffer { uint mask_words[]; };
layout(set = 0, binding = 6, std430) readonly buffer past_key_buffer { VECTOR past_k[]; };
layout(set = 0, binding = 7, std430) readonly buffer past_value_buffer { VECTOR past_v[]; };
#ifdef TROUPE_f16
layout(set = 0, binding = 6, std430) readonly buffer wide_past_key_buffer { vec4 wide_past_k[]; };
layout(set = 0, binding = 7, std430) readonly buffer wide_past_value_buffer { vec4 wide_past_v[]; };
#endif

const uint SLOTS = THREADS / LANES, BLOCK = SLOTS * AHEAD;
const uint KEY_PARTS = (KEY_VECTORS + LANES - 1) / LANES; // vectors of a row that a lane has
const uint VALUE_PARTS = (VALUE_VECTORS + LANES - 1) / LANES;
const uint VALUES = VALUE_VECTORS * WIDTH, PART = 2 + VALUES;
// of them that an invocation looks at
const uint SUBGROUP = THREADS / SUBGROUPS, SUBGROUP_PARTS = (SUBGROUPS + SUBGROUP - 1) / SUBGROUP;
const uint ELEMENT_BLOCKS = (VALUES + SUBGROUP - 1) / SUBGROUP; // that a subgroup joins
shared float parts[SUBGROUPS * ROWS * PART]; // largest score, sum of weights and of weighted values

uint slot, lane; // of this invocation
uint q_start[ROWS], end[ROWS]; // of the group's rows: the first vector of Q, and how many keys the row sees
VECTOR queries_ahead[ROWS * KEY_PARTS];
uint key_start, value_start, past_key_start, past_value_start; // of the group's head, in elements
uint mask_start[ROWS];
VECTOR keys_ahead[AHEAD * KEY_PARTS * WORDS], values_ahead[AHEAD * VALUE_PARTS * WORDS];
float biases_ahead[AHEAD * ROWS]; // what the mask adds

/// The larger of two scores; a NaN stays with who has it.
float larger(float mine, float other) { return other > mine ? other : mine; }

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

/// The same of what is on its way: `first` and `last` are the words of a vector.
void unpack_ahead(VECTOR first, VECTOR last, out float e[WIDTH]) {
#ifdef TROUPE_f16
  if (WIDE_PAST) {
    [[unroll]] for (uint i = 0; i < 4; ++i) {
      e[i] = uintBitsToFloat(first[i]);
      e[4 + i] = uintBitsToFloat(last[i]);
    }
    return;
  }
#endif
  unpack(first, e);
}

// Vector `at` of rows of the operands' type, and of rows of past ones, becomes vector `i` of AHEAD_OF.
#ifdef TROUPE_f16
#define TAKE_NEW(AHEAD_OF, i, rows, at)                                                      \
  if (WIDE_PAST) {                                                                           \
    float e[WIDTH];                                                                          \
    unpack(rows[at], e);                                                                     \
    AHEAD_OF[(i) * WORDS] = floatBitsToUint(vec4(e[0], e[1], e[2], e[3]));                   \
    AHEAD_OF[(i) * WORDS + WORDS - 1] = floatBitsToUint(vec4(e[4], e[5], e[6], e[7]));       \
  } else {                                                                                   \
    AHEAD_OF[(i) * WORDS] = rows[at];                                                        \
  }
#define TAKE_PAST(AHEAD_OF, i, rows, wide_rows, at)                                          \
  if (WIDE_PAST) {                                                                           \
    AHEAD_OF[(i) * WORDS] = floatBitsToUint(wide_rows[2 * (at)]);                            \
    AHEAD_OF[(i) * WORDS + WORDS - 1] = floatBitsToUint(wide_rows[2 * (at) + 1]);            \
  } else {                                                                                   \
    AHEAD_OF[(i) * WORDS] = rows[at];                                                        \
  }
#else
#define TAKE_NEW(AHEAD_OF, i, rows, at) AHEAD_OF[i] = rows[at];
#define TAKE_PAST(AHEAD_OF, i, rows, wide_rows, at) AHEAD_OF[i] = rows[at];
#endif

/// Starts to read key and value t as the slot's u-th. Lanes beyond a row's end read its last vector, which counts for
/// nothing.
void fetch_new(uint u, uint t) {
  const uint key = (key_start + (t - past) * k_steps.z) / WIDTH, value = (value_start + (t - past) * v_steps.z) / WIDTH;
  [[unroll]] for (uint i = 0; i < KEY_PARTS; ++i)
    TAKE_NEW(keys_ahead, u * KEY_PARTS + i, k, key + min(lane + i * LANES, KEY_VECTORS - 1))
  [[unroll]] for (uint i = 0; i < VALUE_PARTS; ++i)
    TAKE_NEW(values_ahead, u * VALUE_PARTS + i, v, value + min(lane + i * LANES, VALUE_VECTORS - 1))
}

void fetch_past(uint u, uint t) {
  const uint key = (past_key_start + t * past_k_steps.z) / WIDTH,
      value = (past_value_start + t * past_v_steps.z) / WIDTH;
  [[unroll]] for (uint i = 0; i < KEY_PARTS; ++i)
    TAKE_PAST(keys_ahead, u * KEY_PARTS + i, past_k, wide_past_k, key + min(lane + i * LANES, KEY_VECTORS - 1))
  [[unroll]] for (uint i = 0; i < VALUE_PARTS; ++i)
    TAKE_PAST(values_ahead, u * VALUE_PARTS + i, past_v, wide_past_v, value + min(lane + i * LANES, VALUE_VECTORS - 1))
}

/// What the mask adds to the score of key t.
float bias_of(uint t, uint mask_start) {
  if (!HAS_MASK)
    return 0.0;
  if (t >= mask_keys)
    return -infinity;
  const uint at = mask_start + t * mask_steps.w;
  if (MASK_BYTES)
    return ((mask_words[at / 4] >> (8 * (at % 4))) & 255u) != 0u ? 0.0 : -infinity;
  return float(mask[at]);
}

/// Starts to read what the slot has of the keys [t0, min(t0 + BLOCK, stop)), and values and mask. Beyond stop it is the
/// last one's.
void fetch_block(uint t0, uint stop) {
  [[unroll]] for (uint u = 0; u < AHEAD; ++u)
    [[unroll]] for (uint r = 0; r < ROWS; ++r)
      biases_ahead[u * ROWS + r] = bias_of(min(t0 + u * SLOTS + slot, stop - 1), mask_start[r]);
  if (!ONE_BLOCK && PAST && t0 + BLOCK <= min(past, stop)) { // no branches between what is read
    [[unroll]] for (uint u = 0; u < AHEAD; ++u)
      fetch_past(u, t0 + u * SLOTS + slot);
    return;
  }
  [[unroll]] for (uint u = 0; u < AHEAD; ++u) {
    const uint t = min(t0 + u * SLOTS + slot, stop - 1);
    if (PAST && t < past)
      fetch_past(u, t);
    else
      fetch_new(u, t);
  }
}

float masked(float score, float bias) {
  if (!HAS_MASK)
    return score;
  return (SKIPS || MASK_BYTES) && bias == -infinity ? -infinity : score + bias;
}

/// Finds the rows [row0, row0 + ROWS) of a key head of batch element b, of `head_rows`. Returns how many keys they see.
uint find_rows(uint b, uint kv_head, uint row0, uint head_rows) {
  lane = gl_SubgroupInvocationID % LANES;
  slot = (gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID) / LANES;
  key_start = k_steps.w + b * k_steps.x + kv_head * k_steps.y;
  value_start = v_steps.w + b * v_steps.x + kv_head * v_steps.y;
  past_key_start = b * past_k_steps.x + kv_head * past_k_steps.y;
  past_value_start = b * past_v_steps.x + kv_head * past_v_steps.y;
  uint last = 0;
  [[unroll]] for (uint r = 0; r < ROWS; ++r) {
    const uint row = min(row0 + r, head_rows - 1), share = row / queries, s = row - share * queries;
    const uint head = kv_head * sharing + share;
    q_start[r] = (q_steps.w + b * q_steps.x + head * q_steps.y + s * q_steps.z) / WIDTH;
    mask_start[r] = b * mask_steps.x + head * mask_steps.y + s * mask_steps.z;
    end[r] = CAUSAL ? uint(clamp(int(s) + causal_offset + 1, 0, int(keys))) : keys;
    last = max(last, end[r]);
  }
  return last;
}

/// Starts to read the queries.
void ask_for_queries() {
  [[unroll]] for (uint r = 0; r < ROWS; ++r)
    [[unroll]] for (uint i = 0; i < KEY_PARTS; ++i)
      queries_ahead[r * KEY_PARTS + i] = q[q_start[r] + min(lane + i * LANES, KEY_VECTORS - 1)];
}

/// Adds up the keys [begin, stop), the first of which have been fetched, and puts what each subgroup has of the rows
/// down in `parts`.
void attend(uint begin, uint stop) {
  float query[ROWS * KEY_PARTS * WIDTH];
  [[unroll]] for (uint i = 0; i < ROWS * KEY_PARTS; ++i) {
    float e[WIDTH];
    unpack(queries_ahead[i], e);
    [[unroll]] for (uint j = 0; j < WIDTH; ++j)
      query[i * WIDTH + j] = e[j] * scale;
  }
  float top[ROWS], sum[ROWS], o[ROWS * VALUE_PARTS * WIDTH];
  [[unroll]] for (uint r = 0; r < ROWS; ++r) {
    top[r] = -infinity;
    sum[r] = 0.0;
  }
  [[unroll]] for (uint i = 0; i < ROWS * VALUE_PARTS * WIDTH; ++i)
    o[i] = 0.0;
  for (uint t0 = begin; t0 < stop; t0 += BLOCK) {
    float scores[AHEAD * ROWS];
    [[unroll]] for (uint u = 0; u < AHEAD; ++u) {
      float dots[ROWS];
      [[unroll]] for (uint r = 0; r < ROWS; ++r)
        dots[r] = 0.0;
      [[unroll]] for (uint i = 0; i < KEY_PARTS; ++i) {
        const uint at = (u * KEY_PARTS + i) * WORDS;
        float e[WIDTH];
        unpack_ahead(keys_ahead[at], keys_ahead[at + WORDS - 1], e);
        if (KEY_VECTORS % LANES == 0 || lane + i * LANES < KEY_VECTORS)
          [[unroll]] for (uint r = 0; r < ROWS; ++r)
            [[unroll]] for (uint j = 0; j < WIDTH; ++j)
              dots[r] = fma(e[j], query[(r * KEY_PARTS + i) * WIDTH + j], dots[r]);
      }
      [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        for (uint reach = 1; reach < LANES; reach *= 2)
          dots[r] += subgroupShuffleXor(dots[r], reach);
        const float score = masked(dots[r], biases_ahead[u * ROWS + r]);
        scores[u * ROWS + r] = t0 + u * SLOTS + slot < min(end[r], stop) ? score : -infinity;
      }
    }

    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
      float largest = top[r];
      [[unroll]] for (uint u = 0; u < AHEAD; ++u)
        largest = scores[u * ROWS + r] > largest ? scores[u * ROWS + r] : largest;
      const float base = base_of(largest);
      if (!ONE_BLOCK) {
        const float shrink = weight_of(top[r] - base);
        sum[r] *= shrink;
        [[unroll]] for (uint i = 0; i < VALUE_PARTS * WIDTH; ++i)
          o[r * VALUE_PARTS * WIDTH + i] *= shrink;
      }
      top[r] = largest;
      [[unroll]] for (uint u = 0; u < AHEAD; ++u) {
        scores[u * ROWS + r] = weight_of(scores[u * ROWS + r] - base);
        sum[r] += scores[u * ROWS + r];
      }
    }
    [[unroll]] for (uint u = 0; u < AHEAD; ++u)
      [[unroll]] for (uint i = 0; i < VALUE_PARTS; ++i) {
        const uint at = (u * VALUE_PARTS + i) * WORDS;
        float e[WIDTH];
        unpack_ahead(values_ahead[at], values_ahead[at + WORDS - 1], e);
        [[unroll]] for (uint r = 0; r < ROWS; ++r) {
          const float weight = scores[u * ROWS + r];
          if (t0 + u * SLOTS + slot < min(end[r], stop) && (!SKIPS || weight != 0.0))
            [[unroll]] for (uint j = 0; j < WIDTH; ++j)
              o[(r * VALUE_PARTS + i) * WIDTH + j] = fma(weight, e[j], o[(r * VALUE_PARTS + i) * WIDTH + j]);
        }
      }
    if (ONE_BLOCK)
      break;
    if (t0 + BLOCK < stop)
      fetch_block(t0 + BLOCK, stop);
  }

  [[unroll]] for (uint r = 0; r < ROWS; ++r) {
    float largest = top[r];
    for (uint reach = LANES; reach < SUBGROUP; reach *= 2)
      largest = larger(largest, subgroupShuffleXor(largest, reach));
    const float weight = weight_of(top[r] - base_of(largest));
    top[r] = largest;
    sum[r] *= weight;
    [[unroll]] for (uint i = r * VALUE_PARTS * WIDTH; i < (r + 1) * VALUE_PARTS * WIDTH; ++i)
      o[i] *= weight;
    for (uint reach = LANES; reach < SUBGROUP; reach *= 2) {
      sum[r] += subgroupShuffleXor(sum[r], reach);
      [[unroll]] for (uint i = r * VALUE_PARTS * WIDTH; i < (r + 1) * VALUE_PARTS * WIDTH; ++i)
        o[i] += subgroupShuffleXor(o[i], reach);
    }
    const uint to = (gl_SubgroupID * ROWS + r) * PART;
    if (gl_SubgroupInvocationID == 0) {
      parts[to] = top[r];
      parts[to + 1] = sum[r];
    }
    if (gl_SubgroupInvocationID < LANES)
      [[unroll]] for (uint i = 0; i < VALUE_PARTS; ++i)
        if (VALUE_VECTORS % LANES == 0 || lane + i * LANES < VALUE_VECTORS)
          [[unroll]] for (uint j = 0; j < WIDTH; ++j)
            parts[to + 2 + (lane + i * LANES) * WIDTH + j] = o[(r * VALUE_PARTS + i) * WIDTH + j];
  }
}

/// What the subgroups have of an element of row r: the largest score, the sum of the weights, and that of the weighted
/// values. For whole subgroups, whose invocations ask for one row.
vec3 join_subgroups(uint r, uint element) {
  float tops[SUBGROUP_PARTS], weights[SUBGROUP_PARTS];
  float largest = -infinity, total = 0.0, result = 0.0;
  [[unroll]] for (uint i = 0; i < SUBGROUP_PARTS; ++i) {
    const uint j = gl_SubgroupInvocationID + i * SUBGROUP;
    tops[i] = j < SUBGROUPS ? parts[(j * ROWS + r) * PART] : -infinity;
    largest = larger(largest, tops[i]);
  }
  for (uint reach = 1; reach < SUBGROUP; reach *= 2)
    largest = larger(largest, subgroupShuffleXor(largest, reach));
  [[unroll]] for (uint i = 0; i < SUBGROUP_PARTS; ++i) {
    const uint j = gl_SubgroupInvocationID + i * SUBGROUP;
    weights[i] = weight_of(tops[i] - base_of(largest));
    if (j < SUBGROUPS)
      total = fma(weights[i], parts[(j * ROWS + r) * PART + 1], total);
  }
  for (uint reach = 1; reach < SUBGROUP; reach *= 2)
    total += subgroupShuffleXor(total, reach);
  [[unroll]] for (uint j = 0; j < SUBGROUPS; ++j)
    result = fma(subgroupShuffle(weights[j / SUBGROUP], j % SUBGROUP), parts[(j * ROWS + r) * PART + 2 + element],
        result);
  return vec3(largest, total, result);
}

/// A result of these sums.
float quotient(float weights, float values) {
  return SKIPS && weights == 0.0 ? 0.0 : values / weights;
}

#endif

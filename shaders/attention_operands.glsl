// What the kernels that walk over tiles of keys (attention.comp, attention_tiled.comp) read and write, and what masks
// make of scores. The including kernel defines FLAGS, a specialisation constant.
#ifndef TROUPE_ATTENTION_OPERANDS
#define TROUPE_ATTENTION_OPERANDS

#include "types.glsl"
#include "common.glsl"
#include "attention_weights.glsl"
#include "parameters/attention.h"

const bool HAS_MASK = (FLAGS & attention_mask) != 0u;
const bool MASK_BYTES = (FLAGS & attention_mask_bytes) != 0u;
const bool CAUSAL = (FLAGS & attention_causal) != 0u;
const bool KEY_VECTORS = (FLAGS & attention_key_vectors) != 0u;
const bool VALUE_VECTORS = (FLAGS & attention_value_vectors) != 0u;
const bool SPLIT = (FLAGS & attention_split) != 0u;
const bool SKIPS = (FLAGS & attention_skips) != 0u;
const bool SOFTCAP = (FLAGS & attention_softcap) != 0u;
const bool LIMITS = (FLAGS & attention_limits) != 0u; // keys of each batch element

layout(set = 0, binding = 1, std430) readonly buffer query_buffer { T q[]; };
layout(set = 0, binding = 1, std430) readonly buffer query_vector_buffer { T4 q4[]; };
layout(set = 0, binding = 2, std430) readonly buffer key_buffer { T k[]; };
layout(set = 0, binding = 2, std430) readonly buffer key_vector_buffer { T4 k4[]; };
layout(set = 0, binding = 3, std430) readonly buffer value_buffer { T v[]; };
layout(set = 0, binding = 3, std430) readonly buffer value_vector_buffer { T4 v4[]; };
layout(set = 0, binding = 4, std430) readonly buffer mask_buffer { T mask[]; };
layout(set = 0, binding = 4, std430) readonly buffer mask_word_buffer { uint mask_words[]; };
layout(set = 0, binding = 5, std430) writeonly buffer output_buffer { T y[]; };
layout(set = 0, binding = 5, std430) writeonly buffer output_vector_buffer { T4 y4[]; };
// [splits][all_rows][2 + width]
layout(set = 0, binding = 5, std430) writeonly buffer partial_buffer { float partial[]; };
layout(set = 0, binding = 6, std430) readonly buffer limit_buffer { uvec2 limits[]; };

/// One row of a matrix, as the group sees it.
struct query_row {
  uint head, s;
};

query_row row_at(uint kv_head, uint row) {
  const uint share = row / queries;
  return query_row(kv_head * sharing + share, row - share * queries);
}

/// Where the rows of a head begin.
uint head_at(uvec4 steps, uint batch, uint head) {
  return steps.w + batch * steps.x + head * steps.y;
}

#define LOADER(name, scalars, vectors, is_vector) \
  vec4 name(uint at, uint column, uint count) { \
    if (is_vector) \
      return column < count ? vec4(vectors[(at + column) / 4]) : vec4(0.0); \
    vec4 e = vec4(0.0); \
    [[unroll]] for (uint i = 0; i < 4; ++i) \
      if (column + i < count) \
        e[i] = float(scalars[at + column + i]); \
    return e; \
  }
LOADER(load_query, q, q4, KEY_VECTORS)
LOADER(load_key, k, k4, KEY_VECTORS)
LOADER(load_value, v, v4, VALUE_VECTORS)

/// Key t's number in a row of the mask, which is added to a score; of booleans 0 or −inf.
float mask_at(uint mask_row, uint t) {
  if (!HAS_MASK)
    return 0.0;
  if (t >= mask_keys)
    return -infinity;
  const uint at = mask_row + t * mask_steps.w;
  if (MASK_BYTES)
    return ((mask_words[at / 4] >> (8 * (at % 4))) & 255u) != 0u ? 0.0 : -infinity;
  return float(mask[at]);
}

/// The score of key t with its cap and with what `mask_at` has for it; `last`: the last key that the query sees.
float masked(float score, uint t, int last, float added) {
  if (CAUSAL && int(t) > last)
    return -infinity;
  if (SOFTCAP)
    score = softcap * exact_tanh(score / softcap);
  if (!HAS_MASK)
    return score;
  return (SKIPS || MASK_BYTES) && added == -infinity ? -infinity : score + added;
}

/// How many keys a batch element has (x), and that query s sees keys ≤ s + y where attention is causal.
ivec2 key_limits(uint batch) {
  return LIMITS ? ivec2(clamp(int(limits[batch].x), 0, int(keys)), int(limits[batch].x) - int(queries))
                : ivec2(keys, causal_offset);
}

/// The keys [x, y) that rows [row0, row0 + ROWS) of a block walk over: none that no row of it sees, of a split its own
/// alone.
uvec2 keys_of_block(uint row0, uint block_rows, ivec2 limit) {
  uint begin = 0, end = uint(limit.x);
  if (CAUSAL) {
    const uint final_row = min(row0 + block_rows, rows) - 1;
    const uint s = row0 / queries == final_row / queries ? final_row % queries : queries - 1;
    end = uint(clamp(int(s) + limit.y + 1, 0, limit.x));
  }
  if (SPLIT) {
    begin = gl_WorkGroupID.z * split_keys;
    end = min(end, begin + split_keys);
  }
  return uvec2(begin, end);
}

/// Where row r of a block's heads goes, in elements of Y; of a split, in `partial`.
uint result_at(uint b, uint kv_head, uint head_index, uint r) {
  if (SPLIT)
    return (gl_WorkGroupID.z * all_rows + head_index * rows + r) * (2 + value_width);
  const query_row row = row_at(kv_head, r);
  return b * y_steps.x + row.head * y_steps.y + row.s * y_steps.z;
}

/// What a row's weighted sum of values is multiplied by.
float result_factor(float sum) {
  return SPLIT ? 1.0 : (SKIPS && sum == 0.0 ? 0.0 : 1.0 / sum);
}

/// Writes elements `first` … of a row that begins at `to`.
void write_result(uint to, uint first, vec4 result) {
  if (VALUE_VECTORS && !SPLIT) {
    if (first < value_width)
      y4[(to + first) / 4] = T4(result);
    return;
  }
  [[unroll]] for (uint e = 0; e < 4; ++e)
    if (first + e < value_width) {
      if (SPLIT)
        partial[to + 2 + first + e] = result[e];
      else
        y[to + first + e] = T(result[e]);
    }
}

/// Writes what stands before a row's elements in `partial`.
void write_statistics(uint to, float largest, float sum) {
  partial[to] = largest;
  partial[to + 1] = sum;
}

#endif

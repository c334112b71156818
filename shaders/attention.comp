#version 450
// Softmax attention in one pass over the keys: Y = softmax(scale · Q · Kᵀ + mask) · V, nothing but Y written.
//
// Heads that share keys are one matrix of G · S query rows. A group computes ROWS of them: it walks over tiles of KEYS keys,
// keeps each row's largest score m, sum of weights l and weighted sum of values o, and scales l and o when m grows. If one
// row block has many keys they are split over groups (SPLIT): m, l and o go to scratch, and attention_join.comp adds them up.
//
// Invocation (row part, column) of the 8 × 16 of a group owns scores of ROWS_EACH rows with keys column + 16 j, and elements
// 4 (column + 16 c) … of those rows of Y. Widths are padded with zeros to whole vectors in shared memory.
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "attention_weights.glsl"
#include "parameters/attention.h"

layout(local_size_x = 128) in;
layout(constant_id = 0) const uint ROWS_EACH = 2;
layout(constant_id = 1) const uint KEYS_EACH = 4;
layout(constant_id = 2) const uint WIDTH = 16;       // of Q and K, in vectors, a multiple of 4
layout(constant_id = 3) const uint VALUE_WIDTH = 16; // of V, in vectors
layout(constant_id = 4) const bool APART = true;     // V has a place of its own in shared memory
layout(constant_id = 5) const uint FLAGS = 0;

const bool HAS_MASK = (FLAGS & attention_mask) != 0u;
const bool MASK_BYTES = (FLAGS & attention_mask_bytes) != 0u;
const bool CAUSAL = (FLAGS & attention_causal) != 0u;
const bool KEY_VECTORS = (FLAGS & attention_key_vectors) != 0u;
const bool VALUE_VECTORS = (FLAGS & attention_value_vectors) != 0u;
const bool SPLIT = (FLAGS & attention_split) != 0u;
const bool SKIPS = (FLAGS & attention_skips) != 0u;
const bool SOFTCAP = (FLAGS & attention_softcap) != 0u;
const bool LIMITS = (FLAGS & attention_limits) != 0u; // keys of each batch element

const uint ROWS = 8 * ROWS_EACH, KEYS = 16 * KEYS_EACH;
const uint KEY_STEP = WIDTH + 1; // odd: 8 neighbouring keys are in different banks
const uint KEY_TILE = KEYS * KEY_STEP, VALUE_TILE = KEYS * VALUE_WIDTH;
const uint VALUES_AT = APART ? KEY_TILE : 0;
const uint TILE = APART ? KEY_TILE + VALUE_TILE : (KEY_TILE > VALUE_TILE ? KEY_TILE : VALUE_TILE);
const uint COLUMNS_EACH = (VALUE_WIDTH + 15) / 16;
const uint WEIGHT_STEP = KEYS / 4 + 1;

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
layout(set = 0, binding = 5, std430) writeonly buffer partial_buffer { float partial[]; }; // [splits][all_rows][2 + width]
layout(set = 0, binding = 6, std430) readonly buffer limit_buffer { uvec2 limits[]; };

shared vec4 queries_tile[ROWS * WIDTH];
shared vec4 tile[TILE];
shared vec4 weights[ROWS * WEIGHT_STEP];
shared vec4 row_parts[ROWS * 4]; // a number of each of a row's 16 columns

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

/// The score of a query and key t with its mask.
float masked(float score, uint t, uint mask_row, int last) {
  if (CAUSAL && int(t) > last)
    return -infinity;
  if (SOFTCAP)
    score = softcap * exact_tanh(score / softcap);
  if (!HAS_MASK)
    return score;
  if (t >= mask_keys)
    return -infinity;
  const uint at = mask_row + t * mask_steps.w;
  if (MASK_BYTES)
    return ((mask_words[at / 4] >> (8 * (at % 4))) & 255u) != 0u ? score : -infinity;
  const float added = float(mask[at]);
  return SKIPS && added == -infinity ? -infinity : score + added;
}

void load_keys(uint base, uint t0, uint end, uint id) {
  [[unroll]] for (uint i = 0; i < (KEYS * WIDTH + 127) / 128; ++i) {
    const uint slot = i * 128 + id, row = slot / WIDTH, at = slot - row * WIDTH;
    if (slot < KEYS * WIDTH)
      tile[row * KEY_STEP + at] = t0 + row < end ? load_key(base + (t0 + row) * k_steps.z, 4 * at, width) : vec4(0.0);
  }
}

void load_values(uint base, uint t0, uint end, uint id) {
  [[unroll]] for (uint i = 0; i < (VALUE_TILE + 127) / 128; ++i) {
    const uint slot = i * 128 + id, row = slot / VALUE_WIDTH, column = slot - row * VALUE_WIDTH;
    if (slot < VALUE_TILE)
      tile[VALUES_AT + slot] =
          t0 + row < end ? load_value(base + (t0 + row) * v_steps.z, 4 * column, value_width) : vec4(0.0);
  }
}

void main() {
  const uint id = gl_LocalInvocationID.x, column = id % 16, first_row = id / 16 * ROWS_EACH;
  const uint group = flat_group();
  if (group >= groups)
    return;
  const uint head_index = group / row_blocks, row0 = (group - head_index * row_blocks) * ROWS;
  const uint b = head_index / kv_heads, kv_head = head_index - b * kv_heads;
  const uint key_base = head_at(k_steps, b, kv_head), value_base = head_at(v_steps, b, kv_head);

  for (uint slot = id; slot < ROWS * WIDTH; slot += 128) {
    const uint r = slot / WIDTH;
    vec4 e = vec4(0.0);
    if (row0 + r < rows) {
      const query_row row = row_at(kv_head, row0 + r);
      e = load_query(head_at(q_steps, b, row.head) + row.s * q_steps.z, 4 * (slot - r * WIDTH), width) * scale;
    }
    queries_tile[slot] = e;
  }

  int limit = int(keys), seen = causal_offset; // query s sees keys ≤ s + seen
  if (LIMITS) {
    limit = clamp(int(limits[b].x), 0, int(keys));
    seen = int(limits[b].x) - int(queries);
  }
  uint mask_rows[ROWS_EACH];
  int last_keys[ROWS_EACH];
  float top[ROWS_EACH], sums[ROWS_EACH];
  vec4 o[ROWS_EACH * COLUMNS_EACH];
  [[unroll]] for (uint i = 0; i < ROWS_EACH; ++i) {
    const query_row row = row_at(kv_head, min(row0 + first_row + i, rows - 1));
    mask_rows[i] = b * mask_steps.x + row.head * mask_steps.y + row.s * mask_steps.z;
    last_keys[i] = int(row.s) + seen;
    top[i] = -infinity;
    sums[i] = 0.0;
    [[unroll]] for (uint c = 0; c < COLUMNS_EACH; ++c)
      o[i * COLUMNS_EACH + c] = vec4(0.0);
  }
  uint begin = 0, end = uint(limit);
  if (CAUSAL) { // no row of the block sees more
    const uint final_row = min(row0 + ROWS, rows) - 1;
    const uint s = row0 / queries == final_row / queries ? final_row % queries : queries - 1;
    end = uint(clamp(int(s) + seen + 1, 0, limit));
  }
  if (SPLIT) {
    begin = gl_WorkGroupID.z * split_keys;
    end = min(end, begin + split_keys);
  }

  for (uint t0 = begin; t0 < end; t0 += KEYS) {
    load_keys(key_base, t0, end, id);
    if (APART)
      load_values(value_base, t0, end, id);
    barrier();

    float scores[ROWS_EACH * KEYS_EACH];
    [[unroll]] for (uint i = 0; i < ROWS_EACH * KEYS_EACH; ++i)
      scores[i] = 0.0;
    for (uint d = 0; d < WIDTH; d += 4)
      [[unroll]] for (uint e = 0; e < 4; ++e) {
        vec4 key[KEYS_EACH];
        [[unroll]] for (uint j = 0; j < KEYS_EACH; ++j)
          key[j] = tile[(16 * j + column) * KEY_STEP + d + e];
        [[unroll]] for (uint i = 0; i < ROWS_EACH; ++i) {
          const vec4 query = queries_tile[(first_row + i) * WIDTH + d + e];
          [[unroll]] for (uint j = 0; j < KEYS_EACH; ++j)
            scores[i * KEYS_EACH + j] = fma(query.x, key[j].x, fma(query.y, key[j].y,
                fma(query.z, key[j].z, fma(query.w, key[j].w, scores[i * KEYS_EACH + j]))));
        }
      }
    [[unroll]] for (uint i = 0; i < ROWS_EACH; ++i) {
      float largest = -infinity;
      [[unroll]] for (uint j = 0; j < KEYS_EACH; ++j) {
        const uint t = t0 + 16 * j + column, at = i * KEYS_EACH + j;
        scores[at] = t < end ? masked(scores[at], t, mask_rows[i], last_keys[i]) : -infinity;
        largest = scores[at] > largest ? scores[at] : largest;
      }
      row_parts[(first_row + i) * 4 + column / 4][column % 4] = largest;
    }
    barrier();

    [[unroll]] for (uint i = 0; i < ROWS_EACH; ++i) {
      float largest = top[i];
      [[unroll]] for (uint part = 0; part < 4; ++part) {
        const vec4 four = row_parts[(first_row + i) * 4 + part];
        [[unroll]] for (uint e = 0; e < 4; ++e)
          largest = four[e] > largest ? four[e] : largest;
      }
      const float base = base_of(largest);
      const float shrink = weight_of(top[i] - base);
      top[i] = largest;
      sums[i] *= shrink;
      [[unroll]] for (uint c = 0; c < COLUMNS_EACH; ++c)
        o[i * COLUMNS_EACH + c] *= shrink;
      [[unroll]] for (uint j = 0; j < KEYS_EACH; ++j) {
        const float weight = weight_of(scores[i * KEYS_EACH + j] - base);
        sums[i] += weight;
        const uint t = 16 * j + column;
        weights[(first_row + i) * WEIGHT_STEP + t / 4][t % 4] = weight;
      }
    }
    if (!APART)
      load_values(value_base, t0, end, id);
    barrier();

    for (uint t = 0; t < KEYS; t += 4) {
      vec4 weight[ROWS_EACH];
      [[unroll]] for (uint i = 0; i < ROWS_EACH; ++i)
        weight[i] = weights[(first_row + i) * WEIGHT_STEP + t / 4];
      [[unroll]] for (uint c = 0; c < COLUMNS_EACH; ++c)
        if (VALUE_WIDTH % 16 == 0 || 16 * c + column < VALUE_WIDTH)
          [[unroll]] for (uint e = 0; e < 4; ++e) {
            const vec4 value = tile[VALUES_AT + (t + e) * VALUE_WIDTH + 16 * c + column];
            [[unroll]] for (uint i = 0; i < ROWS_EACH; ++i)
              if (!SKIPS || weight[i][e] != 0.0)
                o[i * COLUMNS_EACH + c] = fma(vec4(weight[i][e]), value, o[i * COLUMNS_EACH + c]);
          }
    }
    barrier();
  }

  [[unroll]] for (uint i = 0; i < ROWS_EACH; ++i)
    row_parts[(first_row + i) * 4 + column / 4][column % 4] = sums[i];
  barrier();
  [[unroll]] for (uint i = 0; i < ROWS_EACH; ++i) {
    const uint r = row0 + first_row + i;
    if (r >= rows)
      continue;
    vec4 four = row_parts[(first_row + i) * 4];
    [[unroll]] for (uint part = 1; part < 4; ++part)
      four += row_parts[(first_row + i) * 4 + part];
    const float sum = (four.x + four.y) + (four.z + four.w);
    const query_row row = row_at(kv_head, r);
    uint to = b * y_steps.x + row.head * y_steps.y + row.s * y_steps.z;
    if (SPLIT) {
      to = (gl_WorkGroupID.z * all_rows + head_index * rows + r) * (2 + value_width);
      if (column == 0) {
        partial[to] = top[i];
        partial[to + 1] = sum;
      }
    }
    const float factor = SPLIT ? 1.0 : (SKIPS && sum == 0.0 ? 0.0 : 1.0 / sum);
    [[unroll]] for (uint c = 0; c < COLUMNS_EACH; ++c) {
      const uint first = 4 * (16 * c + column);
      const vec4 result = o[i * COLUMNS_EACH + c] * factor;
      if (VALUE_VECTORS && !SPLIT) {
        if (first < value_width)
          y4[(to + first) / 4] = T4(result);
        continue;
      }
      [[unroll]] for (uint e = 0; e < 4; ++e)
        if (first + e < value_width) {
          if (SPLIT)
            partial[to + 2 + first + e] = result[e];
          else
            y[to + first + e] = T(result[e]);
        }
    }
  }
}

#version 450
// Softmax attention in one pass over the keys: Y = softmax(scale · Q · Kᵀ + mask) · V, nothing but Y written.
//
// Heads that share keys are one matrix of G · S query rows. A group computes ROWS of them: it walks over tiles of KEYS
// keys, keeps each row's largest score m, sum of weights l and weighted sum of values o, and scales l and o when m
// grows. If one row block has many keys they are split over groups (SPLIT): m, l and o go to scratch, and
// attention_join.comp adds them up.
//
// Invocation (row part, column) of the 8 × 16 of a group owns scores of ROWS_EACH rows with keys column + 16 j, and
// elements 4 (column + 16 c) … of those rows of Y. Widths are padded with zeros to whole vectors in shared memory.
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require

layout(local_size_x = 128) in;
layout(constant_id = 0) const uint ROWS_EACH = 2;
layout(constant_id = 1) const uint KEYS_EACH = 4;
layout(constant_id = 2) const uint WIDTH = 16;       // of Q and K, in vectors, a multiple of 4
layout(constant_id = 3) const uint VALUE_WIDTH = 16; // of V, in vectors
layout(constant_id = 4) const bool APART = true;     // V has a place of its own in shared memory
layout(constant_id = 5) const uint FLAGS = 0;
#include "attention_operands.glsl"

const uint ROWS = 8 * ROWS_EACH, KEYS = 16 * KEYS_EACH;
const uint KEY_STEP = WIDTH + 1; // odd: 8 neighbouring keys are in different banks
const uint KEY_TILE = KEYS * KEY_STEP, VALUE_TILE = KEYS * VALUE_WIDTH;
const uint VALUES_AT = APART ? KEY_TILE : 0;
const uint TILE = APART ? KEY_TILE + VALUE_TILE : (KEY_TILE > VALUE_TILE ? KEY_TILE : VALUE_TILE);
const uint COLUMNS_EACH = (VALUE_WIDTH + 15) / 16;
const uint WEIGHT_STEP = KEYS / 4 + 1;

shared vec4 queries_tile[ROWS * WIDTH];
shared vec4 tile[TILE];
shared vec4 weights[ROWS * WEIGHT_STEP];
shared vec4 row_parts[ROWS * 4]; // a number of each of a row's 16 columns

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

  const ivec2 limit = key_limits(b);
  uint mask_rows[ROWS_EACH];
  int last_keys[ROWS_EACH];
  float top[ROWS_EACH], sums[ROWS_EACH];
  vec4 o[ROWS_EACH * COLUMNS_EACH];
  [[unroll]] for (uint i = 0; i < ROWS_EACH; ++i) {
    const query_row row = row_at(kv_head, min(row0 + first_row + i, rows - 1));
    mask_rows[i] = b * mask_steps.x + row.head * mask_steps.y + row.s * mask_steps.z;
    last_keys[i] = int(row.s) + limit.y;
    top[i] = -infinity;
    sums[i] = 0.0;
    [[unroll]] for (uint c = 0; c < COLUMNS_EACH; ++c)
      o[i * COLUMNS_EACH + c] = vec4(0.0);
  }
  const uvec2 range = keys_of_block(row0, ROWS, limit);
  const uint end = range.y;

  for (uint t0 = range.x; t0 < end; t0 += KEYS) {
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
        scores[at] = t < end ? masked(scores[at], t, last_keys[i], mask_at(mask_rows[i], t)) : -infinity;
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
    const uint to = result_at(b, kv_head, head_index, r);
    if (SPLIT && column == 0)
      write_statistics(to, top[i], sum);
    const float factor = result_factor(sum);
    [[unroll]] for (uint c = 0; c < COLUMNS_EACH; ++c)
      write_result(to, 4 * (16 * c + column), o[i * COLUMNS_EACH + c] * factor);
  }
}

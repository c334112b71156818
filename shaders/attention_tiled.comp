#version 450
// Softmax attention of many queries in one pass over the keys, as attention.comp, in blocks of registers as
// gemm_tiled.glsl.
//
// A group computes ROWS rows. Eight neighbouring invocations, a line, have ROWS_EACH of them: invocation x of a line
// owns scores with keys x + 8 j of a tile, and elements 4 (x + 8 c) … of Y. A tile of K and then of V is in the same
// place: while one is multiplied, the other is on its way from memory into registers. What the invocations of a line
// tell each other (scores' largest, weights) is in shared memory too. TEAMS teams of a group have the same rows and
// take the tiles of keys in turns, each for itself; they are joined at the end. That is for few groups: then more
// invocations wait for shared memory at the same time. Invariants: THREADS / TEAMS is a multiple of 8, WIDTH of 4.
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 128;
layout(constant_id = 1) const uint TEAMS = 1;
layout(constant_id = 2) const uint ROWS_EACH = 4;
layout(constant_id = 3) const uint KEYS_EACH = 4;
layout(constant_id = 4) const uint WIDTH = 16;       // of Q and K, in vectors
layout(constant_id = 5) const uint VALUE_WIDTH = 16; // of V, in vectors
layout(constant_id = 6) const uint FLAGS = 0;
#include "attention_operands.glsl"

const bool ONE_MASK = (FLAGS & attention_one_mask) != 0u; // all rows of a block have the same

const uint TEAM = THREADS / TEAMS, LINES = TEAM / 8, ROWS = LINES * ROWS_EACH, KEYS = 8 * KEYS_EACH;
const uint PITCH = WIDTH + 1; // odd: rows of neighbours are in different banks
const uint COLUMNS_EACH = (VALUE_WIDTH + 7) / 8;
// vectors of a product that are one body of its loop: a group by itself waits for code more than for anything
const uint STEPS = 2;
const uint KEY_SLOTS = (KEYS * WIDTH + TEAM - 1) / TEAM, VALUE_SLOTS = (KEYS * VALUE_WIDTH + TEAM - 1) / TEAM;
const uint SLOTS = KEY_SLOTS > VALUE_SLOTS ? KEY_SLOTS : VALUE_SLOTS;

// Shared memory: Q, then of each team a tile and its rows' weights, which a number of each invocation of the line
// follows; at the end what other teams have.
const uint TILE = KEYS * (PITCH > VALUE_WIDTH ? PITCH : VALUE_WIDTH);
const uint PARTS_AT = KEYS / 4, WEIGHT_PITCH = PARTS_AT + 2; // four lines' weights are in different banks
const uint TEAM_ROOM = TILE + ROWS * WEIGHT_PITCH;
const uint ROOM = ROWS * PITCH + TEAMS * TEAM_ROOM;
const uint JOIN_STEP = ROWS_EACH * (COLUMNS_EACH + 1) * TEAM, JOIN_ROOM = (TEAMS - 1) * JOIN_STEP;
shared vec4 room[ROOM > JOIN_ROOM ? ROOM : JOIN_ROOM];

vec4 next[SLOTS]; // of a tile, on its way

void fetch_keys(uint base, uint t0, uint end, uint lane) {
  [[unroll]] for (uint i = 0; i < KEY_SLOTS; ++i) {
    const uint slot = i * TEAM + lane, row = slot / WIDTH;
    const bool within = (KEYS * WIDTH % TEAM == 0 || row < KEYS) && t0 + row < end;
    next[i] = within ? load_key(base + (t0 + row) * k_steps.z, 4 * (slot - row * WIDTH), width) : vec4(0.0);
  }
}

void store_keys(uint tile, uint lane) {
  [[unroll]] for (uint i = 0; i < KEY_SLOTS; ++i) {
    const uint slot = i * TEAM + lane, row = slot / WIDTH;
    if (KEYS * WIDTH % TEAM == 0 || row < KEYS)
      room[tile + slot + row] = next[i]; // a pitch of WIDTH + 1
  }
}

void fetch_values(uint base, uint t0, uint end, uint lane) {
  [[unroll]] for (uint i = 0; i < VALUE_SLOTS; ++i) {
    const uint slot = i * TEAM + lane, row = slot / VALUE_WIDTH, column = slot - row * VALUE_WIDTH;
    const bool within = (KEYS * VALUE_WIDTH % TEAM == 0 || row < KEYS) && t0 + row < end;
    next[i] = within ? load_value(base + (t0 + row) * v_steps.z, 4 * column, value_width) : vec4(0.0);
  }
}

void store_values(uint tile, uint lane) {
  [[unroll]] for (uint i = 0; i < VALUE_SLOTS; ++i) {
    const uint slot = i * TEAM + lane;
    if (KEYS * VALUE_WIDTH % TEAM == 0 || slot < KEYS * VALUE_WIDTH)
      room[tile + slot] = next[i];
  }
}

void load_queries(uint b, uint kv_head, uint row0) {
  [[dont_unroll]] for (uint slot = gl_LocalInvocationID.x; slot < ROWS * WIDTH; slot += THREADS) {
    const uint r = slot / WIDTH;
    vec4 e = vec4(0.0);
    if (row0 + r < rows) {
      const query_row row = row_at(kv_head, row0 + r);
      e = load_query(head_at(q_steps, b, row.head) + row.s * q_steps.z, 4 * (slot - r * WIDTH), width) * scale;
    }
    room[slot + r] = e;
  }
}

// Of this invocation's rows.
float top[ROWS_EACH], sums[ROWS_EACH]; // sums are of its own keys
vec4 o[ROWS_EACH * COLUMNS_EACH];

/// Adds what the other teams have to what the first one has.
void join_teams(uint team, uint lane) {
  barrier(); // without keys Q may still be on its way
  if (team > 0)
    [[unroll]] for (uint i = 0; i < ROWS_EACH; ++i) {
      const uint at = (team - 1) * JOIN_STEP + i * (COLUMNS_EACH + 1) * TEAM + lane;
      room[at] = vec4(top[i], sums[i], 0.0, 0.0);
      [[unroll]] for (uint c = 0; c < COLUMNS_EACH; ++c)
        room[at + (1 + c) * TEAM] = o[i * COLUMNS_EACH + c];
    }
  barrier();
  if (team == 0)
    [[unroll]] for (uint other = 0; other < TEAMS - 1; ++other)
      [[unroll]] for (uint i = 0; i < ROWS_EACH; ++i) {
        const uint at = other * JOIN_STEP + i * (COLUMNS_EACH + 1) * TEAM + lane;
        const vec4 others = room[at];
        const float largest = others.x > top[i] ? others.x : top[i], base = base_of(largest);
        const float own = weight_of(top[i] - base), its = weight_of(others.x - base);
        top[i] = largest;
        sums[i] = sums[i] * own + others.y * its;
        [[unroll]] for (uint c = 0; c < COLUMNS_EACH; ++c)
          o[i * COLUMNS_EACH + c] = o[i * COLUMNS_EACH + c] * own + room[at + (1 + c) * TEAM] * its;
      }
  barrier();
}

void main() {
  const uint team = gl_LocalInvocationID.x / TEAM, lane = gl_LocalInvocationID.x % TEAM, x = lane % 8, line = lane / 8;
  const uint tile = ROWS * PITCH + team * TEAM_ROOM, weights = tile + TILE;
  const uint group = flat_group();
  if (group >= groups)
    return;
  const uint head_index = group / row_blocks, row0 = (group - head_index * row_blocks) * ROWS;
  const uint b = head_index / kv_heads, kv_head = head_index - b * kv_heads;
  const uint key_base = head_at(k_steps, b, kv_head), value_base = head_at(v_steps, b, kv_head);
  const ivec2 limit = key_limits(b);
  const uvec2 range = keys_of_block(row0, ROWS, limit);
  const uint end = range.y;

  fetch_keys(key_base, range.x + team * KEYS, end, lane);
  load_queries(b, kv_head, row0);
  uint mask_rows[ROWS_EACH];
  int last_keys[ROWS_EACH];
  [[unroll]] for (uint i = 0; i < ROWS_EACH; ++i) {
    const query_row row = row_at(kv_head, min(row0 + line + i * LINES, rows - 1));
    mask_rows[i] = b * mask_steps.x + row.head * mask_steps.y + row.s * mask_steps.z;
    last_keys[i] = int(row.s) + limit.y;
    top[i] = -infinity;
    sums[i] = 0.0;
    [[unroll]] for (uint c = 0; c < COLUMNS_EACH; ++c)
      o[i * COLUMNS_EACH + c] = vec4(0.0);
  }

  for (uint first = range.x; first < end; first += TEAMS * KEYS) {
    const uint t0 = first + team * KEYS;
    store_keys(tile, lane);
    barrier(); // K and Q are there
    fetch_values(value_base, t0, end, lane);
    float one_mask[KEYS_EACH];
    if (ONE_MASK)
      [[unroll]] for (uint j = 0; j < KEYS_EACH; ++j)
        one_mask[j] = t0 + x + 8 * j < end ? mask_at(mask_rows[0], t0 + x + 8 * j) : 0.0;

    float scores[ROWS_EACH * KEYS_EACH];
    [[unroll]] for (uint i = 0; i < ROWS_EACH * KEYS_EACH; ++i)
      scores[i] = 0.0;
    [[dont_unroll]] for (uint d = 0; d < WIDTH; d += STEPS)
      [[unroll]] for (uint e = 0; e < STEPS; ++e) {
        vec4 query[ROWS_EACH];
        [[unroll]] for (uint i = 0; i < ROWS_EACH; ++i)
          query[i] = room[(line + i * LINES) * PITCH + d + e];
        [[unroll]] for (uint j = 0; j < KEYS_EACH; ++j) {
          const vec4 key = room[tile + (x + 8 * j) * PITCH + d + e];
          [[unroll]] for (uint i = 0; i < ROWS_EACH; ++i)
            scores[i * KEYS_EACH + j] = fma(query[i].x, key.x, fma(query[i].y, key.y,
                fma(query[i].z, key.z, fma(query[i].w, key.w, scores[i * KEYS_EACH + j]))));
        }
      }
    [[unroll]] for (uint i = 0; i < ROWS_EACH; ++i) {
      float largest = -infinity;
      [[unroll]] for (uint j = 0; j < KEYS_EACH; ++j) {
        const uint t = t0 + x + 8 * j;
        float score = -infinity;
        if (t < end)
          score = masked(scores[i * KEYS_EACH + j], t, last_keys[i], ONE_MASK ? one_mask[j] : mask_at(mask_rows[i], t));
        scores[i * KEYS_EACH + j] = score;
        largest = score > largest ? score : largest;
      }
      room[weights + (line + i * LINES) * WEIGHT_PITCH + PARTS_AT + x / 4][x % 4] = largest;
    }
    barrier(); // K is read

    store_values(tile, lane);
    [[unroll]] for (uint i = 0; i < ROWS_EACH; ++i) {
      const uint row = weights + (line + i * LINES) * WEIGHT_PITCH;
      float largest = top[i];
      [[unroll]] for (uint part = 0; part < 2; ++part) {
        const vec4 four = room[row + PARTS_AT + part];
        [[unroll]] for (uint e = 0; e < 4; ++e)
          largest = four[e] > largest ? four[e] : largest;
      }
      const float base = base_of(largest), shrink = weight_of(top[i] - base);
      top[i] = largest;
      sums[i] *= shrink;
      [[unroll]] for (uint c = 0; c < COLUMNS_EACH; ++c)
        o[i * COLUMNS_EACH + c] *= shrink;
      [[unroll]] for (uint j = 0; j < KEYS_EACH; ++j) {
        const float weight = weight_of(scores[i * KEYS_EACH + j] - base);
        sums[i] += weight;
        room[row + 2 * j + x / 4][x % 4] = weight;
      }
    }
    barrier();

    fetch_keys(key_base, t0 + TEAMS * KEYS, end, lane);
    [[dont_unroll]] for (uint t = 0; t < KEYS; t += 4) {
      vec4 weight[ROWS_EACH];
      [[unroll]] for (uint i = 0; i < ROWS_EACH; ++i)
        weight[i] = room[weights + (line + i * LINES) * WEIGHT_PITCH + t / 4];
      [[unroll]] for (uint c = 0; c < COLUMNS_EACH; ++c)
        if (VALUE_WIDTH % 8 == 0 || 8 * c + x < VALUE_WIDTH)
          [[unroll]] for (uint e = 0; e < 4; ++e) {
            const vec4 value = room[tile + (t + e) * VALUE_WIDTH + 8 * c + x];
            [[unroll]] for (uint i = 0; i < ROWS_EACH; ++i)
              if (!SKIPS || weight[i][e] != 0.0)
                o[i * COLUMNS_EACH + c] = fma(vec4(weight[i][e]), value, o[i * COLUMNS_EACH + c]);
          }
    }
    barrier(); // V is read
  }

  if (TEAMS > 1)
    join_teams(team, lane);
  if (team == 0)
    [[unroll]] for (uint i = 0; i < ROWS_EACH; ++i)
      room[weights + (line + i * LINES) * WEIGHT_PITCH + PARTS_AT + x / 4][x % 4] = sums[i];
  barrier();
  if (team > 0)
    return;
  [[unroll]] for (uint i = 0; i < ROWS_EACH; ++i) {
    const uint r = row0 + line + i * LINES;
    if (r >= rows)
      continue;
    const uint parts = weights + (line + i * LINES) * WEIGHT_PITCH + PARTS_AT;
    const vec4 four = room[parts] + room[parts + 1];
    const float sum = (four.x + four.y) + (four.z + four.w);
    const uint to = result_at(b, kv_head, head_index, r);
    if (SPLIT && x == 0)
      write_statistics(to, top[i], sum);
    const float factor = result_factor(sum);
    [[unroll]] for (uint c = 0; c < COLUMNS_EACH; ++c)
      write_result(to, 4 * (8 * c + x), o[i * COLUMNS_EACH + c] * factor);
  }
}

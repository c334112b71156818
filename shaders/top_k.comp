#version 450
// TopK along an axis. SORTED_SIZE is not 0: a workgroup has a piece of a row, which fits shared memory as pairs of key
// and index and is sorted there (bitonic; the size is a power of two). If a row has several pieces, the best k of each
// are the candidates of the next launch, as indices in scratch memory. SORTED_SIZE 0: a workgroup finds the k elements
// of a row one after the other, each the best that comes after the one before. Among equals the lower index comes
// first, and NaN counts as larger than every number.
// Variants: f32 f16 f64 i32 i64 u32 u64 i16 u16 i8 u8
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "sort_key.glsl"
#include "parameters/top_k.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 256;
layout(constant_id = 1) const uint SORTED_SIZE = 0;
layout(constant_id = 2) const bool LARGEST = true;
layout(constant_id = 3) const bool HAS_VALUES = true;
layout(constant_id = 4) const bool HAS_INDICES = true;
layout(constant_id = 5) const bool FIRST = true; // candidates are the row's elements
layout(constant_id = 6) const bool LAST = true;  // what is found is the result

layout(set = 0, binding = 1, std430) readonly buffer source { T x[]; };
layout(set = 0, binding = 2, std430) writeonly buffer values { T y[]; };
layout(set = 0, binding = 3, std430) writeonly buffer indices { uvec2 found[]; };
layout(set = 0, binding = 4, std430) readonly buffer candidate_buffer { uint candidates[]; }; // [rows][candidate_count]
layout(set = 0, binding = 5, std430) writeonly buffer best_buffer { uint best_of_piece[]; };  // [rows][pieces][k]

/// Key and index: what is wanted first is the smallest pair.
struct pair {
  KEY key;
  uint at;
};

const pair last_pair = pair(~KEY(0), 0xffffffffu);
shared pair pairs[SORTED_SIZE == 0 ? THREADS : SORTED_SIZE];

uint start;

pair pair_of(uint i) {
  const KEY key = sort_key(x[start + i * inner]);
  return pair(LARGEST ? ~key : key, i);
}

bool before(pair a, pair b) {
  return a.key < b.key || (a.key == b.key && a.at < b.at);
}

void write(uint row, uint at, uint i) {
  const uint to = row / inner * k * inner + row % inner + at * inner;
  if (HAS_VALUES)
    y[to] = x[start + i * inner];
  if (HAS_INDICES)
    found[to] = uvec2(i, 0);
}

/// Candidate i of a piece; `last_pair`, which is after all, if there is none.
pair candidate(uint row, uint piece, uint i) {
  const uint at = piece * SORTED_SIZE + i;
  if (at >= candidate_count)
    return last_pair;
  const uint index = FIRST ? at : candidates[row * candidate_count + at];
  return index < size ? pair_of(index) : last_pair;
}

void sort_piece(uint row, uint piece) {
  const uint id = gl_LocalInvocationID.x;
  for (uint i = id; i < SORTED_SIZE; i += THREADS)
    pairs[i] = candidate(row, piece, i);
  barrier();
  for (uint block = 2; block <= SORTED_SIZE; block *= 2)
    for (uint reach = block / 2; reach > 0; reach /= 2) {
      for (uint i = id; i < SORTED_SIZE / 2; i += THREADS) {
        const uint low = 2 * i - (i & (reach - 1)), high = low + reach;
        const pair a = pairs[low], b = pairs[high];
        if (((low & block) == 0) == before(b, a)) {
          pairs[low] = b;
          pairs[high] = a;
        }
      }
      barrier();
    }
  for (uint i = id; i < k; i += THREADS)
    if (LAST)
      write(row, i, pairs[i].at);
    else
      best_of_piece[(row * pieces + piece) * k + i] = pairs[i].at;
}

void select_row(uint row) {
  const uint id = gl_LocalInvocationID.x;
  pair last = pair(KEY(0), 0u);
  for (uint at = 0; at < k; ++at) {
    pair best = last_pair;
    for (uint i = id; i < size; i += THREADS) {
      const pair p = pair_of(i);
      if (before(p, best) && (at == 0 || before(last, p)))
        best = p;
    }
    pairs[id] = best;
    barrier();
    for (uint reach = THREADS / 2; reach > 0; reach /= 2) {
      if (id < reach && before(pairs[id + reach], pairs[id]))
        pairs[id] = pairs[id + reach];
      barrier();
    }
    last = pairs[0];
    barrier();
    if (id == 0)
      write(row, at, last.at);
  }
}

void main() {
  const uint group = flat_group(), row = group / pieces;
  if (row >= rows)
    return;
  start = row / inner * size * inner + row % inner;
  if (SORTED_SIZE > 0)
    sort_piece(row, group - row * pieces);
  else
    select_row(row);
}

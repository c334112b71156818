#version 450
// TopK along an axis. A workgroup has a row. SORTED_SIZE is not 0: the row fits shared memory as pairs of key and index and is sorted
// there (bitonic; the size is a power of two); else the k elements are found one after the other, each the best that comes after the
// one before. Among equals the lower index comes first, and NaN counts as larger than every number.
// Variants: f32 f16 i32
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

layout(set = 0, binding = 1, std430) readonly buffer source { T x[]; };
layout(set = 0, binding = 2, std430) writeonly buffer values { T y[]; };
layout(set = 0, binding = 3, std430) writeonly buffer indices { uvec2 found[]; };

const uvec2 behind_all = uvec2(0xffffffffu);
shared uvec2 pairs[SORTED_SIZE == 0 ? THREADS : SORTED_SIZE];

uint start;

/// Key and index: what is wanted first is the smallest pair.
uvec2 pair_of(uint i) {
  const uint key = sort_key(x[start + i * inner]);
  return uvec2(LARGEST ? ~key : key, i);
}

bool before(uvec2 a, uvec2 b) {
  return a.x < b.x || (a.x == b.x && a.y < b.y);
}

void write(uint row, uint at, uint i) {
  const uint to = row / inner * k * inner + row % inner + at * inner;
  if (HAS_VALUES)
    y[to] = x[start + i * inner];
  if (HAS_INDICES)
    found[to] = uvec2(i, 0);
}

void sort_row(uint row) {
  const uint id = gl_LocalInvocationID.x;
  for (uint i = id; i < SORTED_SIZE; i += THREADS)
    pairs[i] = i < size ? pair_of(i) : behind_all;
  barrier();
  for (uint block = 2; block <= SORTED_SIZE; block *= 2)
    for (uint reach = block / 2; reach > 0; reach /= 2) {
      for (uint i = id; i < SORTED_SIZE / 2; i += THREADS) {
        const uint low = 2 * i - (i & (reach - 1)), high = low + reach;
        const uvec2 a = pairs[low], b = pairs[high];
        if (((low & block) == 0) == before(b, a)) {
          pairs[low] = b;
          pairs[high] = a;
        }
      }
      barrier();
    }
  for (uint i = id; i < k; i += THREADS)
    write(row, i, pairs[i].y);
}

void select_row(uint row) {
  const uint id = gl_LocalInvocationID.x;
  uvec2 last = uvec2(0);
  for (uint at = 0; at < k; ++at) {
    uvec2 best = behind_all;
    for (uint i = id; i < size; i += THREADS) {
      const uvec2 p = pair_of(i);
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
      write(row, at, last.y);
  }
}

void main() {
  const uint row = flat_group();
  if (row >= rows)
    return;
  start = row / inner * size * inner + row % inner;
  if (SORTED_SIZE > 0)
    sort_row(row);
  else
    select_row(row);
}

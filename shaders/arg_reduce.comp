#version 450
// ArgMax and ArgMin along an axis: the first or last index of the extreme element, as 64 bits. NaN counts as the
// extreme. Elements are compared as unsigned keys of the same order. See team.glsl for who computes a row.
// Variants: f32 f16 i32 f32_plain f16_plain f64_plain i32_plain i64_plain u32_plain u64_plain i16_plain u16_plain
// Variants: i8_plain u8_plain
#extension GL_GOOGLE_include_directive : require
#include "row_variant.glsl"
#include "types.glsl"
#include "sort_key.glsl"
#include "team.glsl"
#include "parameters/row_extent.h"

layout(set = 0, binding = 1, std430) readonly buffer source { T x[]; };
layout(set = 0, binding = 2, std430) writeonly buffer target { uvec2 y[]; };

layout(constant_id = 4) const bool LARGEST = true;
layout(constant_id = 5) const bool LAST = false;

#if defined(TROUPE_f64) || defined(TROUPE_i64) || defined(TROUPE_u64)
shared KEY team_keys[THREADS];
TEAM_REDUCE(team_max_key, KEY, team_keys, max)
#endif

KEY key_at(uint at) {
  return is_not_a_number(x[at]) ? ~KEY(0) : (LARGEST ? sort_key(x[at]) : ~sort_key(x[at]));
}

void team_row(uint row, bool present) {
  const uint start = row / inner * size * inner + row % inner, end = present ? size : 0;
  KEY best = KEY(0);
  uint found = 0;
  for (uint i = lane; i < end; i += lanes) {
    const KEY key = key_at(start + i * inner);
    if (i == lane || key > best || (LAST && key == best)) {
      best = key;
      found = i;
    }
  }
  const KEY top = team_max_key(best, 0);
  // As a minimum in either case: of indices, or of the elements that remain after them.
  const bool holds = lane < end && best == top;
  const uint at = team_min_index(holds ? (LAST ? size - 1 - found : found) : 0xffffffffu, 1);
  if (present && lane == 0)
    y[row] = uvec2(LAST ? size - 1 - at : at, 0);
}

void main() {
  run_teams(rows);
}

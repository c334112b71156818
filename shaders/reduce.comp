#version 450
// Reductions over any axes: sum, mean, maximum, minimum, product, norms and their logarithms. A team (team.glsl) has a
// part of a result's elements; if results are few and long, a second launch merges the parts of each.
// Variants: f32 f16 f32_plain f16_plain f64_plain i32_plain i64_plain u32_plain u64_plain i16_plain u16_plain i8_plain
// Variants: u8_plain
#extension GL_GOOGLE_include_directive : require
#include "row_variant.glsl"
#include "types.glsl"
#include "float_math.glsl"
#ifdef TROUPE_f64
#include "double_math.glsl"
#endif
#include "team.glsl"
#include "parameters/reduce.h"
#include "reduce_walk.glsl"

layout(set = 0, binding = 1, std430) readonly buffer source { T x[]; };
layout(set = 0, binding = 2, std430) writeonly buffer target { T y[]; };
#ifdef TROUPE_f64
#define REAL2 dvec2
#else
#define REAL2 vec2
#endif
layout(set = 0, binding = 3, std430) buffer scratch { REAL2 part_states[]; };

layout(constant_id = 4) const uint KIND = reduce_sum;
layout(constant_id = 5) const uint PHASE = reduce_all;

#ifdef INTEGERS

shared A team_values[THREADS];

A combine(A a, A b) {
  switch (KIND) {
    case reduce_maximum: return a > b ? a : b;
    case reduce_minimum: return a < b ? a : b;
    case reduce_product: return a * b;
    default: return a + b;
  }
}

A prepared(A v) {
  switch (KIND) {
    case reduce_l1: return v < A(0) ? -v : v;
    case reduce_sum_square: return v * v;
    default: return v;
  }
}

TEAM_REDUCE(team_combine, A, team_values, combine)

/// `least` and `largest` of the element type start a maximum and a minimum.
#if defined(TROUPE_i32)
const int least = -2147483647 - 1, largest = 2147483647;
#elif defined(TROUPE_i64)
const int64_t least = -9223372036854775807l - 1l, largest = 9223372036854775807l;
#elif defined(TROUPE_u64)
const uint64_t least = 0ul, largest = 18446744073709551615ul;
#elif defined(TROUPE_u32)
const uint least = 0u, largest = 0xffffffffu;
#elif defined(TROUPE_i16)
const int least = -32768, largest = 32767;
#elif defined(TROUPE_u16)
const uint least = 0u, largest = 65535u;
#elif defined(TROUPE_i8)
const int least = -128, largest = 127;
#else
const uint least = 0u, largest = 255u;
#endif

void team_row(uint row, bool present) {
  A state = KIND == reduce_maximum ? least : (KIND == reduce_minimum ? largest : A(KIND == reduce_product ? 1 : 0));
  const uint start = present ? row_at(row) : 0;
  for (uint k = lane; k < (present ? count : 0); k += lanes)
    state = combine(state, prepared(A(x[start + element_at(k)])));
  state = team_combine(state, 0);
  if (present && lane == 0)
    y[row] = T(state);
}

#else

#ifdef TROUPE_f64
#define LOWEST (-double_infinity)
#define NOT_A_NUMBER double_nan
shared double team_doubles[THREADS];
double add_doubles(double a, double b) { return a + b; }
double multiply_doubles(double a, double b) { return a * b; }
TEAM_REDUCE(team_sum, double, team_doubles, add_doubles)
TEAM_REDUCE(team_max, double, team_doubles, max)
TEAM_REDUCE(team_product, double, team_doubles, multiply_doubles)
#else
#define LOWEST (-infinity)
#define NOT_A_NUMBER nan_value
#endif

/// `value`: sum, product, or largest of the numbers (for the minimum, of their negatives); `more`: whether there was a
/// NaN, or the sum of e^(x − largest).
struct reduction {
  A value, more;
};

bool is_extreme() { return KIND == reduce_maximum || KIND == reduce_minimum; }

/// e^(a − top), 1 if both are the same infinity.
A relative(A a, A top) { return a == top ? A(1) : exact_exp(a - top); }

reduction step_of(reduction r, A v) {
  if (KIND == reduce_product) {
    r.value *= v;
  } else if (is_extreme()) {
    r.more += A(exact_isnan(v) ? 1 : 0);
    v = KIND == reduce_minimum ? -v : v;
    r.value = v > r.value ? v : r.value;
  } else if (KIND == reduce_log_sum_exp) {
    if (v > r.value) {
      r.more = r.more * exact_exp(r.value - v) + A(1);
      r.value = v;
    } else {
      r.more += relative(v, r.value);
    }
  } else {
    r.value += KIND == reduce_l1 ? abs(v) : (KIND == reduce_l2 || KIND == reduce_sum_square ? v * v : v);
  }
  return r;
}

/// Adds what a part found.
reduction merged(reduction r, reduction part) {
  if (KIND == reduce_product) {
    r.value *= part.value;
  } else if (is_extreme()) {
    r.value = part.value > r.value ? part.value : r.value;
    r.more += part.more;
  } else if (KIND == reduce_log_sum_exp) {
    const A top = max(r.value, part.value);
    r = reduction(top, r.more * relative(r.value, top) + part.more * relative(part.value, top));
  } else {
    r.value += part.value;
  }
  return r;
}

reduction team_merged(reduction r) {
  if (KIND == reduce_product) {
    r.value = team_product(r.value, 0);
  } else if (is_extreme()) {
    r.value = team_max(r.value, 0);
    r.more = team_sum(r.more, 1);
  } else if (KIND == reduce_log_sum_exp) {
    const A top = team_max(r.value, 0);
    r = reduction(top, team_sum(r.more * relative(r.value, top), 1));
  } else {
    r.value = team_sum(r.value, 0);
  }
  return r;
}

A finished(reduction r) {
  if (is_extreme())
    return r.more > A(0) ? NOT_A_NUMBER : (KIND == reduce_minimum ? -r.value : r.value);
  if (KIND == reduce_mean)
    return exact_quotient(r.value, A(count));
  if (KIND == reduce_l2)
    return exact_root(r.value);
  if (KIND == reduce_log_sum)
    return exact_log(r.value);
  return KIND == reduce_log_sum_exp ? r.value + exact_log(r.more) : r.value;
}

void team_row(uint row, bool present) {
  reduction r = reduction(is_extreme() || KIND == reduce_log_sum_exp ? LOWEST : A(KIND == reduce_product ? 1 : 0),
      A(0));
  if (PHASE == reduce_merge) {
    for (uint p = lane; p < (present ? parts : 0); p += lanes) {
      const REAL2 part = part_states[p * results + row];
      r = merged(r, reduction(part.x, part.y));
    }
  } else {
    const uint part = row / results, result = row - part * results, begin = part * per_part;
    const uint end = present ? min(count, begin + per_part) : 0, start = present ? row_at(result) : 0;
    for (uint k = begin + lane; k < end; k += lanes)
      r = step_of(r, A(x[start + element_at(k)]));
  }
  r = team_merged(r);
  if (present && lane == 0) {
    if (PHASE == reduce_parts)
      part_states[row] = REAL2(r.value, r.more);
    else
      y[row] = T(finished(r));
  }
}

#endif

void main() {
  run_teams(rows);
}

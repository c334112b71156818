// The three pooling functions: a start, a step for each element, a combination of partial results, and an end.
#ifndef TROUPE_POOL
#define TROUPE_POOL

#include "common.glsl"
#include "float_math.glsl"
#include "parameters/pool_kind.h"

#ifdef TROUPE_i8
#define INTEGER_LOWEST -128.0
#else
#define INTEGER_LOWEST 0.0
#endif

/// NaN wins.
vec4 pool_maximum(vec4 a, vec4 b) {
  [[unroll]] for (uint i = 0; i < 4; ++i)
    a[i] = b[i] > a[i] || exact_isnan(b[i]) ? b[i] : a[i];
  return a;
}

vec4 exact_quotients(vec4 sums, float count) {
  [[unroll]] for (uint i = 0; i < 4; ++i)
    sums[i] = exact_quotient(sums[i], count);
  return sums;
}

vec4 pool_start(uint kind) {
  return vec4(kind == pool_kind_maximum ? -infinity : 0.0);
}

vec4 pool_step(uint kind, vec4 sum, vec4 value, float order) {
  if (kind == pool_kind_maximum)
    return pool_maximum(sum, value);
  if (kind == pool_kind_average)
    return sum + value;
  if (order == 1.0)
    return sum + abs(value);
  if (order == 2.0)
    return fma(value, value, sum);
  [[unroll]] for (uint i = 0; i < 4; ++i)
    sum[i] += exact_pow(abs(value[i]), order);
  return sum;
}

vec4 pool_join(uint kind, vec4 a, vec4 b) {
  return kind == pool_kind_maximum ? pool_maximum(a, b) : a + b;
}

/// Returns a p-norm from its sum; other kinds unchanged.
vec4 pool_finish(uint kind, vec4 sum, float order) {
  if (kind != pool_kind_norm || order == 1.0)
    return sum;
  [[unroll]] for (uint i = 0; i < 4; ++i)
    sum[i] = order == 2.0 ? exact_root(sum[i]) : exact_pow(sum[i], exact_quotient(1.0, order));
  return sum;
}

#endif

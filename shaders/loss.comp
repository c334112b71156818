#version 450
// NegativeLogLikelihoodLoss: −w[t] · x[n, t, i] for the targets t[n, i], each, or their sum or weighted mean. A target
// that is not a class makes its loss NaN, and so every sum that it is in: a kernel has no other way to refuse it.
// Constants: 0 what to do; 1 flags (parameters/loss.h).
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "exact_arithmetic.glsl"
#include "parameters/loss.h"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint phase = loss_each;
layout(constant_id = 1) const uint flags = 0u;

layout(set = 0, binding = 1, std430) readonly buffer scores { T x[]; };
layout(set = 0, binding = 2, std430) readonly buffer aims { uint targets[]; };
layout(set = 0, binding = 3, std430) readonly buffer factors { T weights[]; };
layout(set = 0, binding = 4, std430) writeonly buffer target { T y[]; };
layout(set = 0, binding = 5, std430) buffer scratch { vec2 sums[]; };

shared vec2 group_sums[256];

/// The loss and the weight of a target.
vec2 loss_at(uint index) {
  const uint low = targets[index * target_words], high = target_words == 2u ? targets[index * target_words + 1u] : 0u;
  if ((flags & loss_ignores) != 0u && low == ignored_low && (target_words == 1u || high == ignored_high))
    return vec2(0.0);
  if (high != 0u || low >= classes)
    return vec2(uintBitsToFloat(nan_bits));
  const float weight = (flags & loss_weights) != 0u ? float(weights[low]) : 1.0;
  const uint image = index / inner;
  return vec2(-weight * float(x[(image * classes + low) * inner + (index - image * inner)]), weight);
}

vec2 group_sum(vec2 own) {
  const uint id = gl_LocalInvocationID.x;
  group_sums[id] = own;
  barrier();
  for (uint reach = 128u; reach > 0u; reach /= 2u) {
    if (id < reach)
      group_sums[id] += group_sums[id + reach];
    barrier();
  }
  return group_sums[0];
}

void main() {
  const uint id = gl_LocalInvocationID.x;
  if (phase == loss_each) {
    const uint index = flat_group() * 256u + id;
    if (index < count)
      y[index] = T(loss_at(index).x);
    return;
  }
  vec2 sum = vec2(0.0);
  if (phase == loss_merge) {
    for (uint p = id; p < parts; p += 256u)
      sum += sums[p];
  } else {
    const uint begin = gl_WorkGroupID.x * per_part, end = min(count, begin + per_part);
    for (uint index = begin + id; index < end; index += 256u)
      sum += loss_at(index);
  }
  sum = group_sum(sum);
  if (id == 0u && phase == loss_parts)
    sums[gl_WorkGroupID.x] = sum;
  else if (id == 0u)
    y[0] = T((flags & loss_mean) != 0u ? exact_quotient(sum.x, sum.y) : sum.x);
}

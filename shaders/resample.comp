#version 450
// One axis of a Resize whose taps are many (antialias) or are weighted anew (exclude_outside), or that leaves its input
// (tf_crop_and_resize): src/ops/onnx/resample.cpp has the formulas. One invocation a result; the other axes are other
// launches, with float32 between them. Constants: 0 flags (parameters/resample.h).
// Variants: f32_f32 f16_f32 f32_f16 f16_f16
#extension GL_GOOGLE_include_directive : require
#if defined(TROUPE_FROM_f16) || defined(TROUPE_TO_f16)
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#include "common.glsl"
#include "parameters/resample.h"
#ifdef TROUPE_FROM_f16
#define SOURCE float16_t
#else
#define SOURCE float
#endif
#ifdef TROUPE_TO_f16
#define TARGET float16_t
#else
#define TARGET float
#endif

layout(local_size_x = 128) in;
layout(constant_id = 0) const uint flags = 0u;

layout(set = 0, binding = 1, std430) readonly buffer source { SOURCE x[]; };
layout(set = 0, binding = 2, std430) writeonly buffer target { TARGET y[]; };

float weight_at(float distance) {
  const float d = abs(distance);
  if ((flags & resample_cubic) == 0u)
    return max(0.0, 1.0 - d);
  if (d <= 1.0)
    return ((cubic_a + 2.0) * d - (cubic_a + 3.0)) * d * d + 1.0;
  return d < 2.0 ? ((cubic_a * d - 5.0 * cubic_a) * d + 8.0 * cubic_a) * d - 4.0 * cubic_a : 0.0;
}

void main() {
  const uint index = flat_group() * 128u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  const uint o = index / inner % out_size, base = index / inner / out_size * in_size * inner + index % inner;
  if (o < inside_begin || o >= inside_end) {
    y[index] = TARGET(outside);
    return;
  }
  const float limit = float(in_size + 2u * radius), place = clamp(fma(float(o), slope, offset), -limit, limit),
      low = floor(place);
  const int last = int(in_size) - 1;
  float sum = 0.0, weights = 0.0;
  for (int k = 1 - int(radius); k <= int(radius); ++k) {
    const int position = int(low) + k;
    const bool excluded = (flags & resample_excludes) != 0u && (position < 0 || position > last);
    const float weight = excluded ? 0.0 : weight_at((float(k) - (place - low)) * shrink);
    weights += weight;
    if (weight != 0.0)
      sum = fma(float(x[base + uint(clamp(position, 0, last)) * inner]), weight, sum);
  }
  y[index] = TARGET((flags & resample_normalises) != 0u && weights != 0.0 ? sum / weights : sum);
}

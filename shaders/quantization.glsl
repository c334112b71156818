// What the quantising kernels share: which scale and zero point an element has (src/ops/quantization.hpp).
//
// Constants: 0 the granularity: 0 one scale for all, 1 one for each index of an axis, 2 one for each block of an axis;
// 1 whether there are zero points.
#ifndef TROUPE_QUANTIZATION
#define TROUPE_QUANTIZATION

#extension GL_EXT_control_flow_attributes : enable
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#if defined(TROUPE_FROM_f16) || defined(TROUPE_TO_f16)
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define REAL float16_t
#else
#define REAL float
#endif
#include "common.glsl"
#include "float_math.glsl"

layout(local_size_x = 256) in;
const uint elements_each = 4u;

layout(constant_id = 0) const uint granularity = 0u;
layout(constant_id = 1) const bool has_zero = false;

layout(set = 0, binding = 0, std140) uniform parameters {
  uint count;
  uint inner;  // elements behind the axis
  uint size;   // of the axis
  uint block;  // neighbours along the axis that share a scale
  uint blocks; // along the axis
};

uint scale_at(uint index) {
  if (granularity == 0u)
    return 0u;
  const uint run = index / inner, outer = run / size, position = run - outer * size;
  if (granularity == 1u)
    return position;
  return (outer * blocks + position / block) * inner + (index - run * inner);
}

#endif

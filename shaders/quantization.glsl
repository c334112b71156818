// What the quantising kernels share: which scale and zero point an element has (src/ops/quantization.hpp).
//
// Constants: 0 the granularity (parameters/quantization.h); 1 whether there are zero points.
#ifndef TROUPE_QUANTIZATION
#define TROUPE_QUANTIZATION

#extension GL_EXT_control_flow_attributes : enable
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#if defined(TROUPE_FROM_f16) || defined(TROUPE_TO_f16) || defined(TROUPE_f16)
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define REAL float16_t
#else
#define REAL float
#endif
#if defined(TROUPE_FROM_i16) || defined(TROUPE_FROM_u16) || defined(TROUPE_TO_i16) || defined(TROUPE_TO_u16)
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#endif
#include "common.glsl"
#include "float_math.glsl"
#include "parameters/quantization.h"

layout(local_size_x = 256) in;
const uint elements_each = 4u;

layout(constant_id = 0) const uint granularity = scale_whole;
layout(constant_id = 1) const bool has_zero = false;

uint scale_at(uint index) {
  if (granularity == scale_whole)
    return 0u;
  const uint run = index / inner, outer = run / size, position = run - outer * size;
  if (granularity == scale_axis)
    return position;
  return (outer * blocks + position / block) * inner + (index - run * inner);
}

#endif

// What MatMulInteger, QLinearMatMul, ConvInteger and QLinearConv share: 8-bit operands, zero points, 32-bit sums that
// wrap, and sums scaled, rounded and saturated to 8 bits if a result is quantised (src/launch/integer_product.cpp).
//
// Constants (parameters/integer_product.h): 0 the result; 1 and 2 zero points of A and B; 3 and 4 their scales, never
// absent.
#ifndef TROUPE_INTEGER_PRODUCT
#define TROUPE_INTEGER_PRODUCT

#extension GL_EXT_control_flow_attributes : enable
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#include "common.glsl"
#include "float_math.glsl"
#include "parameters/integer_product.h"

#ifdef TROUPE_FROM_u8
#define A_TYPE uint8_t
#else
#define A_TYPE int8_t
#endif
#ifdef TROUPE_TO_u8
#define B_TYPE uint8_t
#else
#define B_TYPE int8_t
#endif

layout(constant_id = 0) const uint RESULT = result_sums;
layout(constant_id = 1) const uint A_ZERO = spread_none;
layout(constant_id = 2) const uint B_ZERO = spread_none;
layout(constant_id = 3) const uint A_SCALE = spread_one;
layout(constant_id = 4) const uint B_SCALE = spread_one;

layout(set = 0, binding = 1, std430) readonly buffer operand_a { A_TYPE a[]; };
layout(set = 0, binding = 2, std430) readonly buffer operand_b { B_TYPE b[]; };
layout(set = 0, binding = 3, std430) readonly buffer a_zero_buffer { A_TYPE a_zeros[]; };
layout(set = 0, binding = 4, std430) readonly buffer b_zero_buffer { B_TYPE b_zeros[]; };
layout(set = 0, binding = 5, std430) writeonly buffer sum_buffer { int sums[]; };
layout(set = 0, binding = 5, std430) writeonly buffer byte_buffer { uint8_t bytes[]; };
layout(set = 0, binding = 6, std430) readonly buffer a_scale_buffer { float a_scales[]; };
layout(set = 0, binding = 7, std430) readonly buffer b_scale_buffer { float b_scales[]; };
layout(set = 0, binding = 8, std430) readonly buffer result_scale_buffer { float result_scale[]; };
layout(set = 0, binding = 9, std430) readonly buffer result_zero_buffer { uint8_t result_zero[]; };

int a_zero(uint row) {
  return A_ZERO == spread_none ? 0 : int(a_zeros[A_ZERO == spread_each ? row : 0u]);
}
int b_zero(uint column) {
  return B_ZERO == spread_none ? 0 : int(b_zeros[B_ZERO == spread_each ? column : 0u]);
}

/// Writes one element.
void store(uint at, uint row, uint column, int sum) {
  if (RESULT == result_sums) {
    sums[at] = sum;
    return;
  }
  const float a_scale = a_scales[A_SCALE == spread_each ? row : 0u];
  const float scale = exact_quotient(a_scale * b_scales[B_SCALE == spread_each ? column : 0u], result_scale[0]);
  const uint bits = uint(result_zero[0]);
  const float zero = float(RESULT == result_uint8 ? int(bits) : int(bits << 24) >> 24);
  const float low = RESULT == result_uint8 ? 0.0 : -128.0, high = RESULT == result_uint8 ? 255.0 : 127.0;
  const float v = exact_round(float(sum) * scale) + zero;
  bytes[at] = uint8_t(uint(int(v > low ? (v < high ? v : high) : low)) & 255u);
}

#endif

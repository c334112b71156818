#version 450
// Cast: an element type into another one, as src/tensor/convert.hpp says. Floats go to integers towards zero and
// saturate, NaN becomes 0; integers wrap. The constants say that the source or the target holds booleans: anything but
// 0 is 1.
// Variants: f32_f32 f32_f16 f32_i64 f32_i32 f32_u32 f32_i8 f32_u8 f16_f32 f16_f16 f16_i64 f16_i32 f16_u32 f16_i8 f16_u8
// Variants: i64_f32 i64_f16 i64_i64 i64_i32 i64_u32 i64_i8 i64_u8 i32_f32 i32_f16 i32_i64 i32_i32 i32_u32 i32_i8 i32_u8
// Variants: u32_f32 u32_f16 u32_i64 u32_i32 u32_u32 u32_i8 u32_u8 i8_f32 i8_f16 i8_i64 i8_i32 i8_u32 i8_i8 i8_u8 u8_f32
// Variants: u8_f16 u8_i64 u8_i32 u8_u32 u8_i8 u8_u8
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : enable
#if defined(TROUPE_FROM_f16) || defined(TROUPE_TO_f16)
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#if defined(TROUPE_FROM_i8) || defined(TROUPE_FROM_u8) || defined(TROUPE_TO_i8) || defined(TROUPE_TO_u8)
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#endif
#if defined(TROUPE_FROM_i64) || defined(TROUPE_TO_i64)
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#endif
#include "common.glsl"
#include "parameters/element_count.h"

// SOURCE and TARGET are what memory holds, HUB and WHOLE what they are computed with; BELOW and ABOVE the floats from
// which on results are the LOWEST and the HIGHEST.
#if defined(TROUPE_FROM_f32)
#define SOURCE float
#define HUB float
#define FROM_FLOAT
#elif defined(TROUPE_FROM_f16)
#define SOURCE float16_t
#define HUB float
#define FROM_FLOAT
#elif defined(TROUPE_FROM_i64)
#define SOURCE int64_t
#define HUB int64_t
#elif defined(TROUPE_FROM_i32)
#define SOURCE int
#define HUB int
#elif defined(TROUPE_FROM_u32)
#define SOURCE uint
#define HUB uint
#elif defined(TROUPE_FROM_i8)
#define SOURCE int8_t
#define HUB int
#elif defined(TROUPE_FROM_u8)
#define SOURCE uint8_t
#define HUB uint
#endif
#if defined(TROUPE_TO_f32)
#define TARGET float
#define TO_FLOAT
#elif defined(TROUPE_TO_f16)
#define TARGET float16_t
#define TO_FLOAT
#elif defined(TROUPE_TO_i64)
#define TARGET int64_t
#define WHOLE int64_t
#define LOWEST (-9223372036854775807L - 1L)
#define HIGHEST 9223372036854775807L
#define BELOW -9223372036854775808.0
#define ABOVE 9223372036854775808.0
#elif defined(TROUPE_TO_i32)
#define TARGET int
#define WHOLE int
#define LOWEST (-2147483647 - 1)
#define HIGHEST 2147483647
#define BELOW -2147483648.0
#define ABOVE 2147483648.0
#elif defined(TROUPE_TO_u32)
#define TARGET uint
#define WHOLE uint
#define LOWEST 0u
#define HIGHEST 0xffffffffu
#define BELOW -1.0
#define ABOVE 4294967296.0
#elif defined(TROUPE_TO_i8)
#define TARGET int8_t
#define WHOLE int
#define LOWEST -128
#define HIGHEST 127
#define BELOW -128.0
#define ABOVE 128.0
#elif defined(TROUPE_TO_u8)
#define TARGET uint8_t
#define WHOLE uint
#define LOWEST 0u
#define HIGHEST 255u
#define BELOW -1.0
#define ABOVE 256.0
#endif

layout(local_size_x = 256) in;
const uint elements_each = 4u;

layout(constant_id = 0) const bool from_boolean = false;
layout(constant_id = 1) const bool to_boolean = false;

layout(set = 0, binding = 1, std430) readonly buffer source { SOURCE x[]; };
layout(set = 0, binding = 2, std430) writeonly buffer target { TARGET y[]; };

/// By the bits: a device may take subnormals for zeros.
bool is_true(HUB v) {
#ifdef FROM_FLOAT
  return (floatBitsToUint(v) & 0x7fffffffu) != 0u;
#else
  return v != HUB(0);
#endif
}

TARGET converted(HUB v) {
#ifdef TO_FLOAT
  return TARGET(float(v));
#elif defined(FROM_FLOAT)
  if (!(v < ABOVE))
    return TARGET(v >= ABOVE ? WHOLE(HIGHEST) : WHOLE(0));
  return TARGET(v <= BELOW ? WHOLE(LOWEST) : WHOLE(trunc(v)));
#else
  return TARGET(v);
#endif
}

void main() {
  const uint first = flat_group() * 256u * elements_each + gl_LocalInvocationID.x;
  [[unroll]] for (uint e = 0u; e < elements_each; ++e) {
    const uint index = first + e * 256u;
    if (index >= count)
      return;
    const HUB v = HUB(x[index]);
    if (to_boolean)
      y[index] = TARGET(is_true(v) ? 1 : 0);
    else
      y[index] = converted(from_boolean ? HUB(is_true(v) ? 1 : 0) : v);
  }
}

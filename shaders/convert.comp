#version 450
// Cast between element types that cast.comp has no variant for, as src/tensor/convert.hpp says; any pair. A variant is
// a pair of widths; which types these are is said by the constants. An invocation writes a word of its target: an
// element, or two of 4 bits.
// Constants: 0, 1 the types (parameters/element_type.h); 2 whether a float8 saturates.
// Variants: w8_w8 w8_w16 w8_w32 w8_w64 w16_w8 w16_w16 w16_w32 w16_w64 w32_w8 w32_w16 w32_w32 w32_w64 w64_w8 w64_w16
// Variants: w64_w32 w64_w64
#extension GL_GOOGLE_include_directive : require
#if defined(TROUPE_FROM_w8) || defined(TROUPE_TO_w8)
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#endif
#if defined(TROUPE_FROM_w16) || defined(TROUPE_TO_w16)
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#endif
#if defined(TROUPE_FROM_w64) || defined(TROUPE_TO_w64)
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#define WIDE
#endif
#include "common.glsl"
#include "parameters/element_count.h"
#include "small_floats.glsl"

#if defined(TROUPE_FROM_w8)
#define SOURCE uint8_t
#elif defined(TROUPE_FROM_w16)
#define SOURCE uint16_t
#elif defined(TROUPE_FROM_w32)
#define SOURCE uint
#else
#define SOURCE uint64_t
#endif
#if defined(TROUPE_TO_w8)
#define TARGET uint8_t
#elif defined(TROUPE_TO_w16)
#define TARGET uint16_t
#elif defined(TROUPE_TO_w32)
#define TARGET uint
#else
#define TARGET uint64_t
#endif
// What elements are computed with: REAL if the source is a float, else the bits of WHOLE or, if it has no sign, COUNT.
#ifdef WIDE
#define REAL double
#define WHOLE int64_t
#define COUNT uint64_t
#define WIDTH 64u
#else
#define REAL float
#define WHOLE int
#define COUNT uint
#define WIDTH 32u
#endif

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint from = type_float32;
layout(constant_id = 1) const uint to = type_float32;
layout(constant_id = 2) const bool saturates = true;

layout(set = 0, binding = 1, std430) readonly buffer source { SOURCE x[]; };
layout(set = 0, binding = 2, std430) writeonly buffer target { TARGET y[]; };

bool is_nibble(uint type) { return type == type_int4 || type == type_uint4; }
bool is_unsigned(uint type) {
  return type == type_uint8 || type == type_uint16 || type == type_uint32 || type == type_uint64 ||
         type == type_uint4 || type == type_boolean;
}
bool is_real(uint type) {
  return type == type_float32 || type == type_float64 || (type >= type_bfloat16 && type <= type_e5m2fnuz)
      || type == type_float16;
}

/// An element of a float type.
REAL real_at(uint index) {
#if defined(TROUPE_FROM_w64)
  return packDouble2x32(unpackUint2x32(x[index]));
#else
  const uint bits = uint(x[index]);
  switch (from) {
    case type_float32: return REAL(uintBitsToFloat(bits));
    case type_float16: return REAL(float_of_half(bits));
    case type_bfloat16: return REAL(uintBitsToFloat(bits << 16));
    default: return REAL(float_of_float8(from, bits));
  }
#endif
}

/// By the bits if they are a float32's: a device may take subnormals for zeros.
bool is_true(REAL v) {
#ifdef WIDE
  return v != REAL(0);
#else
  return (floatBitsToUint(v) & ~sign_bit) != 0u;
#endif
}

/// An element of another type, as two's complement.
COUNT whole_at(uint index) {
  if (is_nibble(from)) {
    const uint bits = (uint(x[index >> 1]) >> ((index & 1u) * 4u)) & 15u;
    return from == type_int4 ? COUNT(WHOLE(int(bits << 28) >> 28)) : COUNT(bits);
  }
  const COUNT bits = COUNT(x[index]);
  switch (from) {
    case type_boolean: return COUNT(bits != COUNT(0) ? 1 : 0);
    case type_int8: return COUNT(WHOLE(int(uint(bits) << 24) >> 24));
    case type_int16: return COUNT(WHOLE(int(uint(bits) << 16) >> 16));
    case type_int32: return COUNT(WHOLE(int(uint(bits))));
    default: return bits;
  }
}

/// `v` as an integer of `bits`, towards zero; what it cannot hold is the nearest that it can, NaN is 0.
COUNT whole_of(REAL v, uint bits, bool no_sign) {
  const REAL above = REAL(no_sign ? (bits == 64u   ? 18446744073709551616.0
                                     : bits == 32u ? 4294967296.0
                                                   : REAL(1u << (bits & 31u)))
                                  : (bits == 64u ? 9223372036854775808.0 : REAL(1u << ((bits - 1u) & 31u))));
  const COUNT ones = ~COUNT(0) >> (WIDTH - bits), highest = no_sign ? ones : ones >> 1;
  if (!(v < above))
    return v >= above ? highest : COUNT(0);
  if (no_sign)
    return v <= REAL(-1) ? COUNT(0) : COUNT(v > REAL(0) ? v : REAL(0));
  return v <= -above ? ~highest : COUNT(WHOLE(v));
}

/// The bits of a float as an element of `to`.
COUNT encoded(REAL v, float narrow) {
  switch (to) {
    case type_float32: return COUNT(floatBitsToUint(narrow));
    case type_float16: return COUNT(half_of_float(narrow));
    case type_bfloat16: return COUNT(bfloat_of_float(narrow));
#ifdef TROUPE_TO_w64
    case type_float64: return packUint2x32(unpackDouble2x32(v));
#endif
    default: return COUNT(float8_of_float(to, narrow, saturates));
  }
}

uint bits_of(uint type) {
  switch (type) {
    case type_int8: case type_uint8: return 8u;
    case type_int16: case type_uint16: return 16u;
    case type_int64: case type_uint64: return 64u;
    default: return 32u; // 4-bit types take the low bits of an int32
  }
}

/// The bits of element `index` of the target; higher bits than it has may be set.
COUNT converted(uint index) {
  if (is_real(from)) {
    const REAL v = real_at(index);
    if (is_real(to))
      return encoded(v, float(v));
    return to == type_boolean ? COUNT(is_true(v) ? 1 : 0)
        : whole_of(v, bits_of(to), is_unsigned(to) && to != type_uint4);
  }
  const COUNT bits = whole_at(index);
  if (to == type_boolean)
    return COUNT(bits != COUNT(0) ? 1 : 0);
  if (!is_real(to))
    return bits;
  return is_unsigned(from) ? encoded(REAL(bits), float(bits)) : encoded(REAL(WHOLE(bits)), float(WHOLE(bits)));
}

void main() {
  const uint index = flat_group() * 256u + gl_LocalInvocationID.x;
  if (is_nibble(to)) {
    if (index >= (count + 1u) / 2u)
      return;
    const uint low = uint(converted(2u * index)) & 15u;
    const uint high = 2u * index + 1u < count ? uint(converted(2u * index + 1u)) & 15u : 0u;
    y[index] = TARGET(low | (high << 4));
  } else if (index < count) {
    y[index] = TARGET(converted(index));
  }
}

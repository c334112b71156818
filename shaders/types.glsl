// Element types by variant: T is what memory holds, A what is computed with.
#ifndef TROUPE_TYPES
#define TROUPE_TYPES

#extension GL_EXT_control_flow_attributes : enable

#if defined(TROUPE_f16) || defined(TROUPE_w16) || defined(TROUPE_i16) || defined(TROUPE_u16)
#extension GL_EXT_shader_16bit_storage : require
#ifdef TROUPE_f16
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#endif
#if defined(TROUPE_u8) || defined(TROUPE_i8) || defined(TROUPE_w8)
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#endif
#if defined(TROUPE_i64) || defined(TROUPE_u64) || defined(TROUPE_f64)
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#endif

#if defined(TROUPE_f32)
#define T float
#define T4 vec4
#define A float
#define A4 vec4
#elif defined(TROUPE_f16)
#define T float16_t
#define T4 f16vec4
#define A float
#define A4 vec4
#elif defined(TROUPE_f64)
#define T double
#define A double
#elif defined(TROUPE_i32)
#define T int
#define A int
#elif defined(TROUPE_u32)
#define T uint
#define A uint
#elif defined(TROUPE_i64)
#define T int64_t
#define A int64_t
#elif defined(TROUPE_u64)
#define T uint64_t
#define A uint64_t
#elif defined(TROUPE_i16)
#define T int16_t
#define A int
#elif defined(TROUPE_u16)
#define T uint16_t
#define A uint
#elif defined(TROUPE_i8)
#define T int8_t
#define A int
#elif defined(TROUPE_u8)
#define T uint8_t
#define A uint
#elif defined(TROUPE_w8)
#define T uint8_t
#elif defined(TROUPE_w16)
#define T uint16_t
#elif defined(TROUPE_w32)
#define T uint
#elif defined(TROUPE_w64)
#define T uvec2
#elif defined(TROUPE_w128)
#define T uvec4
#endif

#endif

// How many matrices a subgroup computes, down and across, by variant TYPE_DOWNxACROSS, and of what. See
// gemm_cooperative.glsl.
#if defined(TROUPE_f16_1x1) || defined(TROUPE_i8_1x1)
#define DOWN 1
#define ACROSS 1
#elif defined(TROUPE_f16_1x2) || defined(TROUPE_f32_1x2) || defined(TROUPE_i8_1x2)
#define DOWN 1
#define ACROSS 2
#elif defined(TROUPE_f16_1x3)
#define DOWN 1
#define ACROSS 3
#elif defined(TROUPE_f16_2x2) || defined(TROUPE_f32_2x2) || defined(TROUPE_i8_2x2)
#define DOWN 2
#define ACROSS 2
#elif defined(TROUPE_f16_4x4)
#define DOWN 4
#define ACROSS 4
#elif defined(TROUPE_f16_4x2) || defined(TROUPE_i8_4x2)
#define DOWN 4
#define ACROSS 2
#endif

// With this many sums a subgroup has no registers left. NVIDIA's driver (580) loses a quarter of the speed of its
// loop over the depths where it knows their number, so this is read where parameters are constants too
// (vulkan/block_constants.hpp): by a second block at the same place.
#if DOWN == 4 || (DOWN == 2 && defined(TROUPE_FROM_f32))
layout(set = 0, binding = 0, std140) uniform read_parameters { layout(offset = 8) uint read_depth; };
#define PRODUCT_DEPTH read_depth
#endif

// What vectors of the operands are: float32 is multiplied in pieces (float_pieces.glsl).
#ifdef TROUPE_FROM_f32
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define TROUPE_f32
#define FLOAT_PIECES
#define VECTOR vec4
#elif defined(TROUPE_FROM_f16)
#define TROUPE_f16
#define EIGHT_WIDE
#define VECTOR uvec4
#endif

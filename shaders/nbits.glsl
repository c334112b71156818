// Weights of com.microsoft.MatMulNBits as kernels read them: codes of 4 or 8 bits along the depth, with a scale and a
// zero point for each block (src/ops/contrib/matmul_nbits.cpp). A column's codes are whole words, since blocks are.
//
// Constants: 0 bits of a code; 1 zero points (parameters/nbits.h).
#ifndef TROUPE_NBITS
#define TROUPE_NBITS

#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#include "types.glsl"
#include "common.glsl"
#include "parameters/nbits.h"

layout(constant_id = 0) const uint BITS = 4u;
layout(constant_id = 1) const uint ZEROS = zeros_absent;

layout(set = 0, binding = 1, std430) readonly buffer code_buffer { uint codes[]; };
layout(set = 0, binding = 2, std430) readonly buffer scale_buffer { T scales[]; };
layout(set = 0, binding = 3, std430) readonly buffer packed_zero_buffer { uint8_t packed_zeros[]; };
layout(set = 0, binding = 3, std430) readonly buffer zero_buffer { T zeros[]; };

const uint WORD_DEPTHS = 32u / BITS;

float zero_of(uint n, uint block) {
  if (ZEROS == zeros_whole)
    return float(zeros[n * blocks + block]);
  if (ZEROS == zeros_absent)
    return BITS == 8u ? 128.0 : 8.0;
  if (BITS == 8u)
    return float(uint(packed_zeros[n * zero_bytes + block]));
  return float(uint(packed_zeros[n * zero_bytes + block / 2u]) >> (block % 2u * 4u) & 15u);
}

/// Codes 4·part … 4·part + 3 of a word.
vec4 codes_of(uint word, uint part) {
  if (BITS == 8u)
    return vec4(word & 255u, word >> 8 & 255u, word >> 16 & 255u, word >> 24);
  const uint half_word = word >> (part * 16u);
  return vec4(half_word & 15u, half_word >> 4 & 15u, half_word >> 8 & 15u, half_word >> 12 & 15u);
}

#endif

#version 450
// Products of few rows by up to two matrices of packed weights (src/ops/contrib/matmul_nbits.cpp), bound by reading the
// codes once; see projections.glsl: Y[m, n] = Σ over the blocks of scale · Σ A[m, k] · (code − zero).
//
// An invocation adds up every LANES-th chunk of eight depths, UNROLL of each column at a time, the next ones on their
// way meanwhile. A chunk is within one block.
// Variants: f32 f16 f32_plain f16_plain
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#include "row_variant.glsl"
#define ANGLES 15
#include "projections.glsl"
#include "parameters/nbits_zeros.h"

layout(constant_id = 12) const uint BITS = 4u; // or 8
layout(constant_id = 13) const uint ZEROS = zeros_absent;

layout(set = 0, binding = 5, std430) readonly buffer codes_0 { uint c0[]; };
layout(set = 0, binding = 6, std430) readonly buffer scales_0 { T s0[]; };
layout(set = 0, binding = 7, std430) readonly buffer packed_zeros_0 { uint8_t p0[]; };
layout(set = 0, binding = 7, std430) readonly buffer zeros_0 { T z0[]; };
layout(set = 0, binding = 8, std430) readonly buffer biases_0 { T bias0[]; };
layout(set = 0, binding = 9, std430) writeonly buffer results_0 { T y0[]; };
layout(set = 0, binding = 9, std430) writeonly buffer wide_results_0 { float wide0[]; };
layout(set = 0, binding = 10, std430) readonly buffer codes_1 { uint c1[]; };
layout(set = 0, binding = 11, std430) readonly buffer scales_1 { T s1[]; };
layout(set = 0, binding = 12, std430) readonly buffer packed_zeros_1 { uint8_t p1[]; };
layout(set = 0, binding = 12, std430) readonly buffer zeros_1 { T z1[]; };
layout(set = 0, binding = 13, std430) readonly buffer biases_1 { T bias1[]; };
layout(set = 0, binding = 14, std430) writeonly buffer results_1 { T y1[]; };
layout(set = 0, binding = 14, std430) writeonly buffer wide_results_1 { float wide1[]; };

const uint CHUNKS = (DEPTH + 7u) / 8u;
const uint STEP = UNROLL * LANES;
const uint LOADS = UNROLL * COLUMNS;

/// What an invocation has loaded of a chunk, as it is in memory: to convert it would be to wait for it.
struct chunk {
  uvec2 words; // only the first if codes have 4 bits
  T scale, zero;
  uint zero_byte; // holds the packed zero point
};
chunk next[LOADS];

// Beyond the last chunk or column others are read again: no branch, no wait.
#define LOAD(CODES, SCALES, PACKED, WHOLE, j, n)                                                \
  [[unroll]] for (uint u = 0u; u < UNROLL; ++u) {                                               \
    const uint c = min(first + u * LANES, CHUNKS - 1u);                                         \
    const uint to = u * COLUMNS + j, block = c * 8u >> block_shift;                             \
    next[to].words.x = CODES[n * column_words + c * BITS / 4u];                                 \
    if (BITS == 8u)                                                                             \
      next[to].words.y = CODES[n * column_words + c * 2u + 1u];                                 \
    next[to].scale = SCALES[n * blocks + block];                                                \
    if (ZEROS == zeros_packed)                                                                  \
      next[to].zero_byte = uint(PACKED[n * zero_bytes + block * BITS / 8u]);                    \
    if (ZEROS == zeros_whole)                                                                   \
      next[to].zero = WHOLE[n * blocks + block];                                                \
  }

/// Loads the chunks that an invocation multiplies from chunk `first` on.
void load(place at, uint first) {
  [[unroll]] for (uint j = 0u; j < COLUMNS; ++j) {
    const uint n = min(at.column + (GATED ? j / 2u : j), columns_of(at.part) - 1u);
    if (GATED ? j % 2u == 1u : PARTS > 1u && at.part == 1u) {
      LOAD(c1, s1, p1, z1, j, n)
    } else {
      LOAD(c0, s0, p0, z0, j, n)
    }
  }
}

/// The zero point of what was loaded of chunk c.
float zero_of(chunk loaded, uint c) {
  if (ZEROS == zeros_whole)
    return float(loaded.zero);
  if (ZEROS == zeros_absent)
    return BITS == 8u ? 128.0 : 8.0;
  const uint block = c * 8u >> block_shift;
  return float(BITS == 8u ? loaded.zero_byte : loaded.zero_byte >> (block % 2u * 4u) & 15u);
}

/// Code i of a chunk as a number, less its zero point. Conversions from integers are slow, so the code becomes the last
/// bits of 2^23; whole zero points are taken off along with that, exactly.
float weight_of(uvec2 words, uint i, float zero) {
  const uint code = BITS == 8u ? words[i / 4u] >> (i % 4u * 8u) & 255u : words.x >> (i * 4u) & 15u;
  const float number = uintBitsToFloat(code | 0x4b000000u);
  return ZEROS == zeros_whole ? number - 8388608.0 - zero : number - (8388608.0 + zero);
}

/// Depths [8 c, 8 c + 8) of a row.
void row_chunk(uint row, uint c, out float a[8]) {
  [[unroll]] for (uint v = 0u; v < 8u / WIDTH; ++v) {
    const VECTOR whole = row_vector(row, c * (8u / WIDTH) + v);
    [[unroll]] for (uint i = 0u; i < WIDTH; ++i)
      a[v * WIDTH + i] = element(whole, i);
  }
}

T bias_of(uint p, uint n) {
  return p == 0u ? bias0[n] : bias1[n];
}

void write(uint p, uint at, float value) {
  if (p == 0u) {
    WRITE(y0, wide0)
  } else {
    WRITE(y1, wide1)
  }
}

void main() {
  begin();
  ask_for_rows();
  const place at = place_of(flat_group());
  load(at, lane);
  const ends e = ask_for_ends(at);
  keep_rows();
  clear_sums();
  for (uint first = lane; first < CHUNKS; first += STEP) {
    chunk now[LOADS];
    [[unroll]] for (uint l = 0u; l < LOADS; ++l)
      now[l] = next[l];
    if (first + STEP < CHUNKS)
      load(at, first + STEP);
    [[unroll]] for (uint u = 0u; u < UNROLL; ++u)
      if (first + u * LANES < CHUNKS)
        [[unroll]] for (uint i = 0u; i < ROWS; ++i) {
          float a[8];
          row_chunk(i, first + u * LANES, a);
          [[unroll]] for (uint j = 0u; j < COLUMNS; ++j) {
            const uint l = u * COLUMNS + j;
            const float zero = zero_of(now[l], first + u * LANES);
            float sum = 0.0;
            [[unroll]] for (uint k = 0u; k < 8u; ++k)
              sum = fma(a[k], weight_of(now[l].words, k, zero), sum);
            sums[i * COLUMNS + j] = fma(float(now[l].scale), sum, sums[i * COLUMNS + j]);
          }
        }
  }
  finish(at, e);
}

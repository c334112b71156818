#version 450
// Products of few rows by up to three matrices of packed weights (src/ops/matmul_nbits.cpp) whose columns are whole vectors of 16 bytes; see
// projections.glsl: Y[m, n] = Σ over the blocks of scale · Σ A[m, k] · (code − zero). matmul_nbits.comp has no such condition.
//
// An invocation adds up every LANES-th vector of codes, UNROLL of each column at a time, the next ones on their way meanwhile. A vector is of
// one block, or of PIECES whole ones.
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
layout(constant_id = 12) const uint BITS = 4u; // or 8
layout(constant_id = 13) const uint ZEROS = 0u;
layout(constant_id = 14) const uint BLOCK = 32u;

// Rows are kept for vectors of codes: each's first vector of elements one after the other, then each's second …, so that invocations side by
// side read what lies side by side.
#define CODES (128u / BITS)           // of a vector
#define OPERANDS (CODES / WIDTH)      // vectors of a row that a vector of codes is multiplied by
#define COLUMN_VECTORS (COLUMN_BLOCKS * BLOCK / CODES)
#define COLUMN_BLOCKS ((DEPTH + BLOCK - 1u) / BLOCK)
#define ROW_VECTORS (COLUMN_VECTORS * OPERANDS)
#define KEPT_AT(row, v) (((row) * OPERANDS + (v) % OPERANDS) * COLUMN_VECTORS + (v) / OPERANDS)
#define KEEPS_ROWS true
#define ANGLES 20
#include "projections.glsl"
#include "parameters/nbits_zeros.h"

layout(set = 0, binding = 5, std430) readonly buffer codes_0 { uvec4 c0[]; };
layout(set = 0, binding = 6, std430) readonly buffer scales_0 { T s0[]; };
layout(set = 0, binding = 7, std430) readonly buffer packed_zeros_0 { uint8_t p0[]; };
layout(set = 0, binding = 7, std430) readonly buffer zeros_0 { T z0[]; };
layout(set = 0, binding = 8, std430) readonly buffer biases_0 { T bias0[]; };
layout(set = 0, binding = 9, std430) writeonly buffer results_0 { T y0[]; };
layout(set = 0, binding = 9, std430) writeonly buffer wide_results_0 { float wide0[]; };
layout(set = 0, binding = 10, std430) readonly buffer codes_1 { uvec4 c1[]; };
layout(set = 0, binding = 11, std430) readonly buffer scales_1 { T s1[]; };
layout(set = 0, binding = 12, std430) readonly buffer packed_zeros_1 { uint8_t p1[]; };
layout(set = 0, binding = 12, std430) readonly buffer zeros_1 { T z1[]; };
layout(set = 0, binding = 13, std430) readonly buffer biases_1 { T bias1[]; };
layout(set = 0, binding = 14, std430) writeonly buffer results_1 { T y1[]; };
layout(set = 0, binding = 14, std430) writeonly buffer wide_results_1 { float wide1[]; };
layout(set = 0, binding = 15, std430) readonly buffer codes_2 { uvec4 c2[]; };
layout(set = 0, binding = 16, std430) readonly buffer scales_2 { T s2[]; };
layout(set = 0, binding = 17, std430) readonly buffer packed_zeros_2 { uint8_t p2[]; };
layout(set = 0, binding = 17, std430) readonly buffer zeros_2 { T z2[]; };
layout(set = 0, binding = 18, std430) readonly buffer biases_2 { T bias2[]; };
layout(set = 0, binding = 19, std430) writeonly buffer results_2 { T y2[]; };
layout(set = 0, binding = 19, std430) writeonly buffer wide_results_2 { float wide2[]; };

const uint PIECES = BLOCK < CODES ? CODES / BLOCK : 1u;
const uint BLOCK_VECTORS = BLOCK < CODES ? 1u : BLOCK / CODES;
const uint ZERO_BYTES = (COLUMN_BLOCKS * BITS + 7u) / 8u; // of a column
const uint STEP = UNROLL * LANES;
const uint STEPS = (COLUMN_VECTORS + STEP - 1u) / STEP;
const bool EVEN = COLUMN_VECTORS % STEP == 0u;
const uint LOADS = UNROLL * COLUMNS;
/// Codes of a word, and words of a piece.
const uint WORD = 32u / BITS, WORDS = 4u / PIECES;

/// What an invocation has loaded, as it is in memory: to convert it would be to wait for it. Arrays of vectors and scalars only: drivers keep
/// these in registers.
uvec4 next_words[LOADS];
T next_scale[LOADS * PIECES], next_zero[LOADS * PIECES];
uint next_zero_byte[LOADS]; // holds the packed zero points

// Beyond the last vector or column others are read again: no branch, no wait.
#define LOAD(CODES_OF, SCALES, PACKED, WHOLE, j, n)                                             \
  [[unroll]] for (uint u = 0u; u < UNROLL; ++u) {                                               \
    const uint v = EVEN ? first + u * LANES : min(first + u * LANES, COLUMN_VECTORS - 1u);      \
    next_words[u * COLUMNS + j] = CODES_OF[n * COLUMN_VECTORS + v];                             \
  }                                                                                             \
  [[unroll]] for (uint u = 0u; u < UNROLL; ++u) {                                               \
    const uint v = EVEN ? first + u * LANES : min(first + u * LANES, COLUMN_VECTORS - 1u);      \
    const uint to = u * COLUMNS + j, block = v / BLOCK_VECTORS * PIECES;                        \
    [[unroll]] for (uint piece = 0u; piece < PIECES; ++piece) {                                 \
      next_scale[to * PIECES + piece] = SCALES[n * COLUMN_BLOCKS + block + piece];              \
      if (ZEROS == zeros_whole)                                                                 \
        next_zero[to * PIECES + piece] = WHOLE[n * COLUMN_BLOCKS + block + piece];              \
    }                                                                                           \
    if (ZEROS == zeros_packed)                                                                  \
      next_zero_byte[to] = uint(PACKED[n * ZERO_BYTES + block * BITS / 8u]);                    \
  }

/// Loads the vectors of a slot that an invocation multiplies from vector `first` on.
void load(place at, uint first) {
  [[unroll]] for (uint j = 0u; j < COLUMNS; ++j) {
    const uint n = min(at.column + (GATED ? j / 2u : j), columns_of(at.part) - 1u);
    if (GATED ? j % 2u == 1u : PARTS > 1u && at.part == 1u) {
      LOAD(c1, s1, p1, z1, j, n)
    } else if (PARTS > 2u && at.part == 2u) {
      LOAD(c2, s2, p2, z2, j, n)
    } else {
      LOAD(c0, s0, p0, z0, j, n)
    }
  }
}

/// The packed zero point of a block, or the one of those that have none; 0 if zero points are whole elements.
uint zero_code(uint zero_byte, uint block) {
  if (ZEROS == zeros_whole)
    return 0u;
  if (ZEROS == zeros_absent)
    return BITS == 8u ? 128u : 8u;
  return BITS == 8u ? zero_byte : zero_byte >> (block % 2u * 4u) & 15u;
}

/// The numbers that go with a word: four, or eight if codes have 4 bits. No array: drivers spill those that pass through functions.
struct eight {
  vec4 low, high;
};

// The codes of a word as numbers, less a zero point. Conversions from integers are slow, so a code becomes the last bits of a power of two,
// which is taken off along with the zero point, exactly: of 2^10, or 2^6, two codes at a time, where there is float16, else of 2^23.
#ifdef TROUPE_f16
f16vec2 halves(uint word) {
  return unpackFloat2x16(word);
}

eight decode(uint word, uint zero) {
  const f16vec2 whole = halves(0x64006400u | zero * 0x10001u);
  const uint next_codes = word >> 8;
  if (BITS == 8u) {
    const f16vec2 even = halves(word & 0x00ff00ffu | 0x64006400u) - whole;
    const f16vec2 odd = halves(next_codes & 0x00ff00ffu | 0x64006400u) - whole;
    return eight(vec4(even.x, odd.x, even.y, odd.y), vec4(0.0));
  }
  const f16vec2 sixteenths = halves(0x54005400u | zero * 0x100010u), sixteenth = f16vec2(0.0625);
  const f16vec2 a = halves(word & 0x000f000fu | 0x64006400u) - whole;
  const f16vec2 b = fma(halves(word & 0x00f000f0u | 0x64006400u), sixteenth, -sixteenths);
  const f16vec2 c = halves(next_codes & 0x000f000fu | 0x64006400u) - whole;
  const f16vec2 d = fma(halves(next_codes & 0x00f000f0u | 0x64006400u), sixteenth, -sixteenths);
  return eight(vec4(a.x, b.x, c.x, d.x), vec4(a.y, b.y, c.y, d.y));
}
#else
vec4 decode_four(uint codes, uint zero) {
  const uvec4 each = uvec4(codes, codes >> BITS, codes >> 2u * BITS, codes >> 3u * BITS) & (1u << BITS) - 1u;
  return uintBitsToFloat(each | 0x4b000000u) - (8388608.0 + float(zero));
}

eight decode(uint word, uint zero) {
  return eight(decode_four(word, zero), BITS == 8u ? vec4(0.0) : decode_four(word >> 16, zero));
}
#endif

/// What the codes of word w of vector v are multiplied by, of a row.
eight operands_of(uint row, uint v, uint w) {
#ifdef TROUPE_f16
  const uvec4 whole = kept_rows[(row * OPERANDS + w * WORD / WIDTH) * COLUMN_VECTORS + v];
  const vec4 low = vec4(unpackHalf2x16(whole.x), unpackHalf2x16(whole.y));
  const vec4 high = vec4(unpackHalf2x16(whole.z), unpackHalf2x16(whole.w));
  return eight(BITS == 8u && w % 2u == 1u ? high : low, high);
#else
  const uint at = (row * OPERANDS + w * WORD / WIDTH) * COLUMN_VECTORS + v;
  return eight(kept_rows[at], BITS == 8u ? vec4(0.0) : kept_rows[at + COLUMN_VECTORS]);
#endif
}

T bias_of(uint p, uint n) {
  return p == 0u ? bias0[n] : p == 1u ? bias1[n] : bias2[n];
}

void write(uint p, uint at, float value) {
  if (p == 0u) {
    WRITE(y0, wide0)
  } else if (p == 1u) {
    WRITE(y1, wide1)
  } else {
    WRITE(y2, wide2)
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
  for (uint step = 0u; step < STEPS; ++step) {
    uvec4 words[LOADS];
    T scale[LOADS * PIECES], zero[LOADS * PIECES];
    uint zero_byte[LOADS];
    [[unroll]] for (uint l = 0u; l < LOADS; ++l) {
      words[l] = next_words[l];
      if (ZEROS == zeros_packed)
        zero_byte[l] = next_zero_byte[l];
    }
    [[unroll]] for (uint l = 0u; l < LOADS * PIECES; ++l) {
      scale[l] = next_scale[l];
      if (ZEROS == zeros_whole)
        zero[l] = next_zero[l];
    }
    if (step + 1u < STEPS)
      load(at, lane + (step + 1u) * STEP);
    [[unroll]] for (uint i = 0u; i < UNROLL * PIECES; ++i) {
      const uint u = i / PIECES, piece = i % PIECES, vector = lane + step * STEP + u * LANES;
      const bool counts = EVEN || vector < COLUMN_VECTORS;
      const uint v = counts ? vector : 0u;
      vec4 block_sums[SUMS]; // four each: every sum waits for the one before
      [[unroll]] for (uint s = 0u; s < SUMS; ++s)
        block_sums[s] = vec4(0.0);
      [[unroll]] for (uint w = piece * WORDS; w < (piece + 1u) * WORDS; ++w) {
        vec4 low[COLUMNS], high[COLUMNS];
        [[unroll]] for (uint j = 0u; j < COLUMNS; ++j) {
          const uint l = u * COLUMNS + j;
          const eight codes = decode(words[l][w], zero_code(zero_byte[l], v / BLOCK_VECTORS * PIECES + piece));
          const float less = ZEROS == zeros_whole ? float(zero[l * PIECES + piece]) : 0.0;
          low[j] = ZEROS == zeros_whole ? codes.low - less : codes.low;
          high[j] = ZEROS == zeros_whole ? codes.high - less : codes.high;
        }
        [[unroll]] for (uint row = 0u; row < ROWS; ++row) {
          const eight a = operands_of(row, v, w);
          [[unroll]] for (uint j = 0u; j < COLUMNS; ++j) {
            const uint s = row * COLUMNS + j;
            block_sums[s] = fma(a.low, low[j], block_sums[s]);
            if (BITS == 4u)
              block_sums[s] = fma(a.high, high[j], block_sums[s]);
          }
        }
      }
      [[unroll]] for (uint s = 0u; s < SUMS; ++s) {
        const vec4 four = block_sums[s];
        const float factor = float(scale[(u * COLUMNS + s % COLUMNS) * PIECES + piece]);
        const float sum = fma(factor, four.x + four.y + (four.z + four.w), sums[s]);
        sums[s] = counts ? sum : sums[s];
      }
    }
  }
  finish(at, e);
}

#version 450
// Products of one row by up to three matrices of packed weights (src/ops/contrib/matmul_nbits.cpp) whose columns are
// whole vectors of 16 bytes; see projections.glsl: Y[n] = Σ over the blocks of scale · Σ A[k] · (code − zero).
// matmul_nbits.comp has no such conditions.
//
// An invocation adds up every LANES-th vector of codes, UNROLL of each column at a time, the next ones on their way
// meanwhile. A vector is of one block, or of PIECES whole ones. Codes are multiplied as the integers that they are if
// the row is of float16 (fixed_rows.glsl), else as float32.
// Variants: f32 f16
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
layout(constant_id = 12) const uint BITS = 4u; // or 8
layout(constant_id = 13) const uint ZEROS = 0u;
layout(constant_id = 14) const uint BLOCK = 32u;

// The row is kept for vectors of codes: each's first vector of elements one after the other, then each's second …, so
// that neighbouring invocations read neighbouring vectors.
#define CODES (128u / BITS)           // of a vector
#define OPERANDS (CODES / WIDTH)      // vectors of a row that a vector of codes is multiplied by
#define COLUMN_VECTORS (COLUMN_BLOCKS * BLOCK / CODES)
#define COLUMN_BLOCKS ((DEPTH + BLOCK - 1u) / BLOCK)
#define ROW_VECTORS (COLUMN_VECTORS * OPERANDS)
#define KEPT_AT(row, v) ((v) % OPERANDS * COLUMN_VECTORS + (v) / OPERANDS)
#define KEEPS_ROWS true
#define ANGLES 20
#ifdef TROUPE_f16
#define PUTS_DOWN
#endif
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
#ifdef TROUPE_f16
#include "fixed_rows.glsl"
#endif

/// What an invocation has loaded, as it is in memory: to convert it would be to wait for it. Arrays of vectors and
/// scalars only: drivers keep these in registers.
uvec4 next_words[LOADS];
T next_scale[LOADS * PIECES], next_zero[LOADS * PIECES];
uint next_zero_byte[LOADS]; // holds the packed zero points
/// The same of what it multiplies.
uvec4 words[LOADS];
T scale[LOADS * PIECES], zero[LOADS * PIECES];
uint zero_byte[LOADS];

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

void take_loaded() {
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

/// The zero point of load l's piece, of vector v, as a code; 0 if zero points are whole elements.
int zero_code(uint l, uint piece, uint v) {
  if (ZEROS == zeros_whole)
    return 0;
  if (ZEROS == zeros_absent)
    return BITS == 8u ? 128 : 8;
  const uint block = v / BLOCK_VECTORS * PIECES + piece;
  return int(BITS == 8u ? zero_byte[l] : zero_byte[l] >> (block % 2u * 4u) & 15u);
}

// Of an invocation's vector u of each column, number v: adds the products of one piece by the row to the sums.
#ifdef TROUPE_f16
/// What is taken off codes of 8 bits, so that they are signed bytes.
const int CENTRE = BITS == 8u ? 128 : 0;

/// Adds the products of a word of codes by the numbers of the row, to the sums of their high and of their low bytes.
void add_products(uint word, uvec4 row, bool second, inout int high, inout int low) {
  if (BITS == 4u) {
    const uint even = word & 0x0f0f0f0fu, odd = word >> 4 & 0x0f0f0f0fu;
    high += dot_signed(even, row.x) + dot_signed(odd, row.y);
    low += int(dot_unsigned(even, row.z) + dot_unsigned(odd, row.w));
  } else {
    const uint centred = word ^ 0x80808080u;
    high += dot_signed(centred, second ? row.y : row.x);
    low += dot_mixed(centred, second ? row.w : row.z);
  }
}

void add_piece(uint u, uint piece, uint v, bool counts) {
  int high[COLUMNS], low[COLUMNS];
  [[unroll]] for (uint j = 0u; j < COLUMNS; ++j)
    high[j] = low[j] = 0;
  [[unroll]] for (uint w = piece * WORDS; w < (piece + 1u) * WORDS; ++w) {
    const uvec4 row = kept_rows[w * WORD / WIDTH * COLUMN_VECTORS + v];
    [[unroll]] for (uint j = 0u; j < COLUMNS; ++j)
      add_products(words[u * COLUMNS + j][w], row, w % 2u == 1u, high[j], low[j]);
  }
  const fixed_piece of_row = fixed_pieces[v * PIECES + piece];
  [[unroll]] for (uint j = 0u; j < COLUMNS; ++j) {
    const uint l = u * COLUMNS + j;
    const int whole = high[j] * 256 + low[j];
    const float sum = ZEROS == zeros_whole
        ? fma(float(CENTRE) - float(zero[l * PIECES + piece]), float(of_row.sum), float(whole))
        : float(whole - (zero_code(l, piece, v) - CENTRE) * of_row.sum);
    const float added = fma(float(scale[l * PIECES + piece]) * of_row.unit, sum, sums[j]);
    sums[j] = counts ? added : sums[j];
  }
}
#else
/// Four codes as numbers, less a zero point. Conversions from integers are slow, so a code becomes the last bits of
/// 2^23, which is taken off along with the zero point, exactly.
vec4 decode(uint codes, int zero) {
  const uvec4 each = uvec4(codes, codes >> BITS, codes >> 2u * BITS, codes >> 3u * BITS) & (1u << BITS) - 1u;
  return uintBitsToFloat(each | 0x4b000000u) - (8388608.0 + float(zero));
}

void add_piece(uint u, uint piece, uint v, bool counts) {
  const uint FOURS = WORD / 4u; // of a word
  vec4 four[COLUMNS];           // sums: each waits for the one before
  [[unroll]] for (uint j = 0u; j < COLUMNS; ++j)
    four[j] = vec4(0.0);
  [[unroll]] for (uint f = piece * WORDS * FOURS; f < (piece + 1u) * WORDS * FOURS; ++f) {
    const vec4 row = kept_rows[f * COLUMN_VECTORS + v];
    [[unroll]] for (uint j = 0u; j < COLUMNS; ++j) {
      const uint l = u * COLUMNS + j;
      const vec4 codes = decode(words[l][f / FOURS] >> f % FOURS * 16u, zero_code(l, piece, v));
      four[j] = fma(row, ZEROS == zeros_whole ? codes - float(zero[l * PIECES + piece]) : codes, four[j]);
    }
  }
  [[unroll]] for (uint j = 0u; j < COLUMNS; ++j) {
    const float sum = four[j].x + four[j].y + (four[j].z + four[j].w);
    const float added = fma(float(scale[(u * COLUMNS + j) * PIECES + piece]), sum, sums[j]);
    sums[j] = counts ? added : sums[j];
  }
}
#endif

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
    take_loaded();
    if (step + 1u < STEPS)
      load(at, lane + (step + 1u) * STEP);
    [[unroll]] for (uint i = 0u; i < UNROLL * PIECES; ++i) {
      const uint u = i / PIECES, vector = lane + step * STEP + u * LANES;
      const bool counts = EVEN || vector < COLUMN_VECTORS;
      add_piece(u, i % PIECES, counts ? vector : 0u, counts);
    }
  }
  finish(at, e);
}

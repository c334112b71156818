// A row of float16 as fixed-point numbers, which integer instructions multiply by packed codes where these lie, four
// products each (nbits_vectors.comp).
//
// A piece of the row goes with codes of one vector and block. Its numbers have 16 bits and count 2^-14 of the largest
// power of two that is not above its largest element, so that this is exact and none is off by more than 2^-15 of it:
// 16 times less than float16 would round it by. Where an element is infinite or NaN, a piece counts that instead:
// infinities are 1 or -1 then, all else is 0.
#ifndef TROUPE_FIXED_ROWS
#define TROUPE_FIXED_ROWS

#extension GL_KHR_shader_subgroup_shuffle : require
#include "byte_dots.glsl"

/// What a piece's numbers count, and their sum.
struct fixed_piece {
  float unit;
  int sum;
};
const uint PIECE_VECTORS = CODES / PIECES / WIDTH;
shared fixed_piece fixed_pieces[COLUMN_VECTORS * PIECES];

const uint infinity_bits = 0x7f800000u;
/// 1.5 · 2^23: what is added to it is rounded to the last bits.
const float rounder = 12582912.0;

/// The high and the low bytes of four numbers, in order.
uvec2 bytes_of(int a, int b, int c, int d) {
  const uint even = uint(bitfieldInsert(a, c, 16, 16)), odd = uint(bitfieldInsert(b, d, 16, 16));
  return uvec2(even >> 8 & 0x00ff00ffu | odd & 0xff00ff00u, even & 0x00ff00ffu | odd << 8 & 0xff00ff00u);
}

/// Keeps vector v of the row. Codes of 4 bits are multiplied all even ones together, and all odd ones, those of 8 bits
/// as they lie: a kept vector has the high bytes of the first four, of the other four, and their low bytes.
void put_down(uint row, uint v, uvec4 vector) {
  float most = 0.0, total = 0.0;
  [[unroll]] for (uint i = 0u; i < WIDTH; ++i) {
    most = max(most, abs(element(vector, i)));
    total += abs(element(vector, i));
  }
  // The bits of floats that are not negative are in their order, infinity above all numbers, NaN above that.
  const uint whole = floatBitsToUint(total) & 0x7fffffffu;
  uint largest = whole < infinity_bits ? floatBitsToUint(most) : whole;
  [[unroll]] for (uint lanes = 1u; lanes < PIECE_VECTORS; lanes *= 2u)
    largest = max(largest, subgroupShuffleXor(largest, lanes));
  const uint exponent = max(largest >> 23, 100u); // float16 has none smaller
  const float inverse = uintBitsToFloat(268u - exponent << 23);
  int number[WIDTH];
  [[unroll]] for (uint i = 0u; i < WIDTH; ++i)
    number[i] = floatBitsToInt(fma(element(vector, i), inverse, rounder)) - floatBitsToInt(rounder);
  if (largest >= infinity_bits)
    [[unroll]] for (uint i = 0u; i < WIDTH; ++i) {
      const uint bits = floatBitsToUint(element(vector, i));
      number[i] = (bits & 0x7fffffffu) != infinity_bits ? 0 : bits == infinity_bits ? 1 : -1;
    }
  int sum = 0;
  [[unroll]] for (uint i = 0u; i < WIDTH; ++i)
    sum += number[i];
  [[unroll]] for (uint lanes = 1u; lanes < PIECE_VECTORS; lanes *= 2u)
    sum += subgroupShuffleXor(sum, lanes);
  if (v >= VECTORS)
    return;
  const bool apart = BITS == 4u;
  const uvec2 first = bytes_of(number[0], number[apart ? 2 : 1], number[apart ? 4 : 2], number[apart ? 6 : 3]);
  const uvec2 second = bytes_of(number[apart ? 1 : 4], number[apart ? 3 : 5], number[apart ? 5 : 6], number[7]);
  kept_rows[KEPT_AT(row, v)] = uvec4(first.x, second.x, first.y, second.y);
  if (v % PIECE_VECTORS == 0u)
    fixed_pieces[v / PIECE_VECTORS] =
        fixed_piece(uintBitsToFloat(largest < infinity_bits ? exponent - 14u << 23 : largest), sum);
}

#endif

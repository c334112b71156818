// One column of a product with packed weights: the inner loop of matmul_nbits.cpp, for each kind of processor.
#pragma once

#include <cstdint>

namespace troupe {

/// A column of codes with 4 or 8 bits, a number that is taken off each, and a scale for each block of them.
struct packed_column {
  const uint8_t* codes;
  const float* scales;
  int64_t blocks, block_size; // block_size: a multiple of 16
  float middle;
};

/// y[row] = Σ over blocks of scale · Σ a[row][i] · (code[i] − middle) for `rows` ≤ 4 rows, which are `step` apart. Of a block's 4-bit codes the even ones
/// come first in A, then the odd ones.
using column_function = void (*)(const packed_column& column, const float* a, int64_t step, int64_t rows, float* y);

/// Returns the fastest that this processor has for codes of `bits` (4 or 8) bits.
column_function column_function_for(int64_t bits, int64_t block_size);
/// Returns the one that every processor has.
column_function plain_column_function(int64_t bits);

} // namespace troupe

// Columns of a product with packed weights: the inner loops of matmul_nbits.cpp, for each kind of processor.
#pragma once

#include <cstdint>

namespace troupe {

/// Columns of codes with 4 or 8 bits, one after the other, a number that is taken off each code, and a scale for each
/// block of them.
struct packed_columns {
  const uint8_t* codes;
  const float* scales;
  int64_t count, blocks, block_size; // block_size: a multiple of 16
  float middle;
};

/// y[row · y_step + column] = Σ over blocks of scale · Σ a[row][i] · (code[i] − middle) for `rows` ≤ 4 rows, which are
/// `step` apart. Of a block's 4-bit codes the even ones come first in A, then the odd ones.
using columns_function = void (*)(const packed_columns& columns, const float* a, int64_t step, int64_t rows, float* y,
                                  int64_t y_step);

/// Returns the fastest that this processor has for codes of `bits` (4 or 8) bits.
columns_function columns_function_for(int64_t bits, int64_t block_size);
/// Returns the one that every processor has.
columns_function plain_columns_function(int64_t bits);

} // namespace troupe

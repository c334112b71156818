// The usual end of a product of bytes on several rows at once, for processors with AVX-512: what int8_finish.hpp does, kept in registers.
#pragma once

#include <cstdint>

namespace troupe::int8 {

/// What quantises: limits of the bytes, the type's range or what an activation leaves of it.
struct quantised_end {
  int32_t zero, least, most;
};

/// Rows of sums, and what becomes of them: (sum + correction − row sum · zero) · scale + offset, limited to [low, high], or quantised:
/// ⌊that⌉ + end.zero, limited.
struct finished_rows {
  const int32_t* sums;
  int64_t sums_step, rows, columns;
  const int32_t* row_sums; // null: zero points of B are 0
  // Of the first column.
  const int32_t *correction, *zero;
  const float *scale, *offset; // offset: null for 0
  bool is_quantised;
  quantised_end end; // if it is
  float low, high;   // if not
  void* y;
  int64_t y_step; // bytes
};

/// The same for up to 64 channels of one pixel, quantised; sums and parameters are in the order of packed channels (int8_product.hpp).
struct finished_channels {
  int64_t channels;
  const int32_t* correction;
  const float *scale, *offset;
  quantised_end end;
  bool is_signed;
  uint8_t* y;
};

/// Returns whether this processor has what these need.
bool can_finish_rows();
void finish_rows(const finished_rows& f);
void finish_channels(const finished_channels& f, const int32_t* sums);

} // namespace troupe::int8

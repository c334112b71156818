// The usual end of a product of bytes on several rows at once, for processors with AVX2 or AVX-512: what
// int8_finish.hpp does, kept in registers.
#pragma once

#include <cstdint>

namespace troupe::int8 {

/// What quantises: the scale of the result, which is ordinary (within 1e-20 and 1e20), and one over it; limits of the
/// bytes, the type's range or what an activation leaves of it.
struct quantised_end {
  float scale, inverse;
  int32_t zero, least, most;
};

// Each product and sum is rounded, as by kernels of GPUs and on processors without AVX2: beside a tie, one rounding
// less is another byte. So compilers must not fuse a product with a sum (`apart`).

/// Rows of sums, and what becomes of them: (sum + correction − row sum · zero) · scale + offset, limited to [low,
/// high], or quantised: ⌊that / end.scale⌉ + end.zero, limited; what is rounded is at most `most_rounded`.
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

/// The largest magnitude of what becomes an integer: room is left for a zero point.
inline constexpr double most_rounded = 2e9;

/// Parameters of columns that may be read beyond the last one.
inline constexpr int64_t spare_columns = 64;

/// How sums of columns end as bytes: ⌊((sum + correction) · scale + offset) / end.scale⌉ + end.zero, limited. What is
/// rounded is at most `most_rounded`.
struct byte_end {
  // Of the first column; `spare_columns` more than there are can be read.
  const int32_t* correction;
  const float *scale, *offset;
  quantised_end end;
  bool is_signed;
};

/// Returns whether this processor has what these need.
bool can_finish_rows();
void finish_rows(const finished_rows& f);

} // namespace troupe::int8

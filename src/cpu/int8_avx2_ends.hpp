// Sums of bytes end as bytes, with AVX2: what kernels with AVX2 and with VNNI of 256 bits share.
#pragma once

#include "cpu/int8_product.hpp"

namespace troupe::int8::avx2_ends {

/// Ends the sums of `rows` rows of a block, [rows][16], the first of which is column `first` of `e`: `count` columns of
/// each row, at `y`; its rows are `y_step` bytes apart. An odd row's neighbour may be any, but can be read.
void rows_to_bytes(const int32_t* sums, int64_t rows, const byte_end& e, int64_t first, int64_t count, uint8_t* y,
                   int64_t y_step);

/// Ends a pixel's sums of 64 packed channels: `channels` of them, in order, at `y`. `e` is for packed order.
void pixel_to_bytes(const int32_t* sums, const byte_end& e, int64_t channels, uint8_t* y);

} // namespace troupe::int8::avx2_ends

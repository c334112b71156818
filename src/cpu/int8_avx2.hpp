// What int8_product.hpp does, for processors with AVX2 and without VNNI. Bytes are widened to 16 bits, since the
// instruction that multiplies bytes saturates the sum of two products.
#pragma once

#include "cpu/int8_product.hpp"

namespace troupe::int8::avx2 {

void multiply(const uint8_t* a, int64_t lda, int64_t rows, const panel& b, int32_t* c, int64_t ldc);
void multiply_to_bytes(const uint8_t* a, int64_t lda, int64_t rows, const panel& b, const byte_end& end,
                       int64_t columns, uint8_t* y, int64_t y_step);
void interleave(const line_bytes& x, int64_t count, int64_t channels, uint8_t flip, uint8_t* columns);
void multiply_channels(const uint8_t* columns, const line_taps& t, int64_t pixels, const int8_t* w, int32_t* sums);
void multiply_channels_to_bytes(const uint8_t* columns, const line_taps& t, int64_t pixels, const int8_t* w,
                                const byte_end& end, int64_t channels, uint8_t* y, int64_t y_step);

} // namespace troupe::int8::avx2

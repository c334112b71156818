// What int8_product.hpp does, for processors with VNNI and without AVX-512: its instruction for registers of 256 bits.
#pragma once

#include "cpu/int8_product.hpp"

namespace troupe::int8::avx2_vnni {

void multiply(const uint8_t* a, int64_t lda, int64_t rows, const panel& b, int32_t* c, int64_t ldc);
void multiply_to_bytes(const uint8_t* a, int64_t lda, int64_t rows, const panel& b, const byte_end& end,
                       int64_t columns, uint8_t* y, int64_t y_step);
void multiply_channels(const uint8_t* columns, const line_taps& t, int64_t pixels, const int8_t* w, int32_t* sums);
void multiply_channels_to_bytes(const uint8_t* columns, const line_taps& t, int64_t pixels, const int8_t* w,
                                const byte_end& end, int64_t channels, uint8_t* y, int64_t y_step);

} // namespace troupe::int8::avx2_vnni

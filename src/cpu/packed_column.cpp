#include "cpu/packed_column.hpp"

#include "base/cpu_feature.hpp"

#include <algorithm>
#include <immintrin.h>

namespace troupe {
namespace {

/// Returns column `n`, alone.
packed_columns column_of(const packed_columns& c, int64_t n, int64_t bits) {
  return {
      c.codes + n * c.blocks * c.block_size * bits / 8, c.scales + n * c.blocks, 1, c.blocks, c.block_size, c.middle};
}

template <int Bits>
void multiply_column_plainly(const packed_columns& column, const float* a, int64_t step, int64_t rows, float* y,
                             int64_t y_step) {
  const int64_t half = column.block_size / 2;
  for (int64_t row = 0; row < rows; ++row, a += step, y += y_step) {
    *y = 0;
    for (int64_t block = 0; block < column.blocks; ++block) {
      const float* x = a + block * column.block_size;
      const uint8_t* codes = column.codes + block * column.block_size * Bits / 8;
      float sum = 0;
      if (Bits == 8)
        for (int64_t i = 0; i < column.block_size; ++i)
          sum += x[i] * (static_cast<float>(codes[i]) - column.middle);
      else
        for (int64_t i = 0; i < half; ++i)
          sum += x[i] * (static_cast<float>(codes[i] & 15) - column.middle) +
                 x[half + i] * (static_cast<float>(codes[i] >> 4) - column.middle);
      *y += column.scales[block] * sum;
    }
  }
}

// -- AVX2: 8 codes at a time

#define TROUPE_AVX2_FMA [[gnu::target("avx2,fma")]]

TROUPE_AVX2_FMA float sum_of_lanes(__m256 x) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

template <int Bits, int Rows>
TROUPE_AVX2_FMA void multiply_column_avx2(const packed_columns& column, const float* a, int64_t step, float* y,
                                          int64_t y_step) {
  const int64_t half = column.block_size / 2, bytes = column.block_size * Bits / 8;
  const __m256 middle = _mm256_set1_ps(column.middle);
  __m256 total[Rows];
  for (int row = 0; row < Rows; ++row)
    total[row] = _mm256_setzero_ps();
  for (int64_t block = 0; block < column.blocks; ++block, a += column.block_size) {
    __m256 part[Rows];
    for (int row = 0; row < Rows; ++row)
      part[row] = _mm256_setzero_ps();
    const uint8_t* codes = column.codes + block * bytes;
    for (int64_t i = 0; i < bytes; i += 8) {
      const __m256i wide = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes + i)));
      const __m256i codes_low = Bits == 8 ? wide : _mm256_and_si256(wide, _mm256_set1_epi32(15));
      const __m256 low = _mm256_sub_ps(_mm256_cvtepi32_ps(codes_low), middle);
      const __m256 high = _mm256_sub_ps(_mm256_cvtepi32_ps(_mm256_srli_epi32(wide, 4)), middle);
      for (int row = 0; row < Rows; ++row) {
        part[row] = _mm256_fmadd_ps(_mm256_loadu_ps(a + row * step + i), low, part[row]);
        if (Bits == 4)
          part[row] = _mm256_fmadd_ps(_mm256_loadu_ps(a + row * step + half + i), high, part[row]);
      }
    }
    for (int row = 0; row < Rows; ++row)
      total[row] = _mm256_fmadd_ps(_mm256_set1_ps(column.scales[block]), part[row], total[row]);
  }
  for (int row = 0; row < Rows; ++row)
    y[row * y_step] = sum_of_lanes(total[row]);
}

// -- AVX-512: 16 codes at a time; those of 4 bits are looked up in a register

#define TROUPE_AVX512F [[gnu::target("avx512f,avx2,fma")]]

template <int Bits, int Rows>
TROUPE_AVX512F void multiply_column_avx512(const packed_columns& column, const float* a, int64_t step, float* y,
                                           int64_t y_step) {
  const __m512 middle = _mm512_set1_ps(column.middle);
  const __m512 numbers = _mm512_sub_ps(_mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), middle);
  const int64_t half = column.block_size / 2, bytes = column.block_size * Bits / 8;
  __m512 total[Rows];
#pragma GCC unroll 4
  for (int row = 0; row < Rows; ++row)
    total[row] = _mm512_setzero_ps();
  for (int64_t block = 0; block < column.blocks; ++block, a += column.block_size) {
    __m512 part[Rows];
#pragma GCC unroll 4
    for (int row = 0; row < Rows; ++row)
      part[row] = _mm512_setzero_ps();
    const uint8_t* codes = column.codes + block * bytes;
    for (int64_t i = 0; i < bytes; i += 16) {
      const __m512i wide =
          _mm512_maskz_cvtepu8_epi32(0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + i)));
      // The look-up reads the lowest 4 bits alone.
      const __m512 low = Bits == 8 ? _mm512_sub_ps(_mm512_maskz_cvtepi32_ps(0xffff, wide), middle)
                                   : _mm512_maskz_permutexvar_ps(0xffff, wide, numbers);
      const __m512 high = _mm512_maskz_permutexvar_ps(0xffff, _mm512_maskz_srli_epi32(0xffff, wide, 4), numbers);
#pragma GCC unroll 4
      for (int row = 0; row < Rows; ++row) {
        part[row] = _mm512_fmadd_ps(_mm512_loadu_ps(a + row * step + i), low, part[row]);
        if (Bits == 4)
          part[row] = _mm512_fmadd_ps(_mm512_loadu_ps(a + row * step + half + i), high, part[row]);
      }
    }
#pragma GCC unroll 4
    for (int row = 0; row < Rows; ++row)
      total[row] = _mm512_fmadd_ps(_mm512_set1_ps(column.scales[block]), part[row], total[row]);
  }
  for (int row = 0; row < Rows; ++row) {
    alignas(64) float lanes[16];
    _mm512_store_ps(lanes, total[row]);
    y[row * y_step] = sum_of_lanes(_mm256_add_ps(_mm256_load_ps(lanes), _mm256_load_ps(lanes + 8)));
  }
}

template <int Bits>
void multiply_plainly(const packed_columns& c, const float* a, int64_t step, int64_t rows, float* y, int64_t y_step) {
  for (int64_t n = 0; n < c.count; ++n)
    multiply_column_plainly<Bits>(column_of(c, n, Bits), a, step, rows, y + n, y_step);
}

template <int Bits, int Rows>
TROUPE_AVX2_FMA void multiply_columns_avx2(const packed_columns& c, const float* a, int64_t step, float* y,
                                           int64_t y_step) {
  for (int64_t n = 0; n < c.count; ++n)
    multiply_column_avx2<Bits, Rows>(column_of(c, n, Bits), a, step, y + n, y_step);
}

template <int Bits>
void multiply_rows_avx2(const packed_columns& c, const float* a, int64_t step, int64_t rows, float* y, int64_t y_step) {
  switch (rows) {
    case 1: return multiply_columns_avx2<Bits, 1>(c, a, step, y, y_step);
    case 2: return multiply_columns_avx2<Bits, 2>(c, a, step, y, y_step);
    case 3: return multiply_columns_avx2<Bits, 3>(c, a, step, y, y_step);
    default: return multiply_columns_avx2<Bits, 4>(c, a, step, y, y_step);
  }
}

template <int Bits, int Rows>
TROUPE_AVX512F void multiply_columns_avx512(const packed_columns& c, const float* a, int64_t step, float* y,
                                            int64_t y_step) {
  for (int64_t n = 0; n < c.count; ++n)
    multiply_column_avx512<Bits, Rows>(column_of(c, n, Bits), a, step, y + n, y_step);
}

template <int Bits>
void multiply_rows_avx512(const packed_columns& c, const float* a, int64_t step, int64_t rows, float* y,
                          int64_t y_step) {
  switch (rows) {
    case 1: return multiply_columns_avx512<Bits, 1>(c, a, step, y, y_step);
    case 2: return multiply_columns_avx512<Bits, 2>(c, a, step, y, y_step);
    case 3: return multiply_columns_avx512<Bits, 3>(c, a, step, y, y_step);
    default: return multiply_columns_avx512<Bits, 4>(c, a, step, y, y_step);
  }
}

} // namespace

columns_function plain_columns_function(int64_t bits) {
  return bits == 8 ? multiply_plainly<8> : multiply_plainly<4>;
}

columns_function columns_function_for(int64_t bits, int64_t block_size) {
  if (cpu_has(cpu_feature::avx512) && block_size * bits / 8 % 16 == 0)
    return bits == 8 ? multiply_rows_avx512<8> : multiply_rows_avx512<4>;
  if (cpu_has(cpu_feature::avx2))
    return bits == 8 ? multiply_rows_avx2<8> : multiply_rows_avx2<4>;
  return plain_columns_function(bits);
}

} // namespace troupe

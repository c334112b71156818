#include "cpu/int8_product.hpp"

#include "cpu/int8_vnni.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <immintrin.h>

namespace troupe::int8 {
namespace {

// -- any processor

void multiply_plainly(const uint8_t* a, int64_t lda, int64_t rows, const panel& b, int32_t* c, int64_t ldc) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t block = 0; block < b.blocks; ++block) {
      const int8_t* w = b.data + block * b.quads * block_columns * quad;
      std::array<int32_t, block_columns> sums{};
      for (int64_t q = 0; q < b.quads; ++q, w += block_columns * quad)
        for (size_t j = 0; j < sums.size(); ++j)
          for (size_t t = 0; t < quad; ++t)
            sums[j] += a[row * lda + q * quad + static_cast<int64_t>(t)] * w[j * quad + t];
      std::copy(sums.begin(), sums.end(), c + row * ldc + block * block_columns);
    }
}

void interleave_plainly(const line_bytes& x, int64_t count, int64_t channels, uint8_t flip, uint8_t* columns) {
  for (int64_t column = 0; column < count; ++column)
    for (int64_t q = 0; q < x.quads; ++q, columns += column_bytes)
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t t = 0; t < quad; ++t)
          columns[place_in_group(c) * quad + t] = x.lines[q * quad + t][column * x.step + c] ^ flip;
}

void multiply_channels_plainly(const uint8_t* columns, const line_taps& t, int64_t pixels, const int8_t* w,
                               int32_t* sums) {
  for (int64_t pixel = 0; pixel < pixels; ++pixel, sums += group_channels) {
    std::fill_n(sums, group_channels, 0);
    for (int64_t k = 0; k < t.kernel; ++k)
      for (int64_t q = 0; q < t.quads; ++q) {
        const uint8_t* x = columns + t.place(pixel, k, q);
        const int8_t* tap = w + (k * t.quads + q) * column_bytes;
        for (int64_t i = 0; i < column_bytes; ++i)
          sums[i / quad] += x[i] * tap[i];
      }
  }
}

bool runs_anywhere() {
  return true;
}

// -- AVX2: bytes are widened to 16 bits, since the instruction that multiplies bytes saturates the sum of two products

#define TROUPE_AVX2 [[gnu::target("avx2")]]

TROUPE_AVX2 int32_t load_quad(const uint8_t* a) {
  int32_t bytes;
  std::memcpy(&bytes, a, sizeof bytes);
  return bytes;
}

/// Sums of a pair of registers, each of which has two halves of a quad for 4 channels, in order.
TROUPE_AVX2 __m256i joined(__m256i a, __m256i b) {
  return _mm256_permute4x64_epi64(_mm256_hadd_epi32(a, b), 0b11011000); // after hadd: 0 1 4 5 | 2 3 6 7
}

/// One row and one block: each register has the sums of two halves of a quad for 4 columns.
template <int64_t Rows>
TROUPE_AVX2 void tile_avx2(const uint8_t* a, int64_t lda, const int8_t* b, int64_t quads, int32_t* c, int64_t ldc) {
  __m256i sums[Rows][4];
  for (auto& row : sums)
    for (__m256i& sum : row)
      sum = _mm256_setzero_si256();
  for (int64_t q = 0; q < quads; ++q, b += block_columns * quad) {
    __m256i w[4];
    for (int64_t i = 0; i < 4; ++i)
      w[i] = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b + i * 16)));
    for (int64_t row = 0; row < Rows; ++row) {
      const __m256i x = _mm256_cvtepu8_epi16(_mm_set1_epi32(load_quad(a + row * lda + q * quad)));
      for (int64_t i = 0; i < 4; ++i)
        sums[row][i] = _mm256_add_epi32(sums[row][i], _mm256_madd_epi16(x, w[i]));
    }
  }
  for (int64_t row = 0; row < Rows; ++row)
    for (int64_t i = 0; i < 4; i += 2)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(c + row * ldc + i * 4), joined(sums[row][i], sums[row][i + 1]));
}

TROUPE_AVX2 void multiply_avx2(const uint8_t* a, int64_t lda, int64_t rows, const panel& b, int32_t* c, int64_t ldc) {
  for (int64_t block = 0; block < b.blocks; ++block) {
    const int8_t* w = b.data + block * b.quads * block_columns * quad;
    int64_t row = 0;
    for (; row + 2 <= rows; row += 2)
      tile_avx2<2>(a + row * lda, lda, w, b.quads, c + row * ldc + block * block_columns, ldc);
    if (row < rows)
      tile_avx2<1>(a + row * lda, lda, w, b.quads, c + row * ldc + block * block_columns, ldc);
  }
}

/// Interleaves one lane's 16 channels of one column, `count` of which are there.
TROUPE_AVX2 void interleave_lane_avx2(const uint8_t* const* lines, int64_t at, int64_t count, __m128i flip,
                                      uint8_t* to) {
  alignas(16) uint8_t rows[quad][16] = {};
  __m128i x[quad];
  for (int64_t i = 0; i < quad; ++i) {
    std::memcpy(rows[i], lines[i] + at, static_cast<size_t>(count));
    x[i] = _mm_xor_si128(_mm_load_si128(reinterpret_cast<const __m128i*>(rows[i])), flip);
  }
  const __m128i low01 = _mm_unpacklo_epi8(x[0], x[1]), low23 = _mm_unpacklo_epi8(x[2], x[3]);
  const __m128i high01 = _mm_unpackhi_epi8(x[0], x[1]), high23 = _mm_unpackhi_epi8(x[2], x[3]);
  const __m128i y[quad] = {_mm_unpacklo_epi16(low01, low23), _mm_unpackhi_epi16(low01, low23),
                           _mm_unpacklo_epi16(high01, high23), _mm_unpackhi_epi16(high01, high23)};
  for (int64_t i = 0; i < quad; ++i)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i * 64), y[i]);
}

TROUPE_AVX2 void interleave_avx2(const line_bytes& x, int64_t count, int64_t channels, uint8_t flip, uint8_t* columns) {
  for (int64_t column = 0; column < count; ++column)
    for (int64_t q = 0; q < x.quads; ++q, columns += column_bytes)
      for (int64_t lane = 0; lane * 16 < channels; ++lane)
        interleave_lane_avx2(x.lines + q * quad, column * x.step + lane * 16,
                             std::min<int64_t>(16, channels - lane * 16), _mm_set1_epi8(static_cast<char>(flip)),
                             columns + lane * 16);
}

TROUPE_AVX2 __m256i product_avx2(const uint8_t* x, const int8_t* w) {
  return _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x))),
                           _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w))));
}

TROUPE_AVX2 void multiply_channels_avx2(const uint8_t* columns, const line_taps& t, int64_t pixels, const int8_t* w,
                                        int32_t* sums) {
  for (int64_t pixel = 0; pixel < pixels; ++pixel, sums += group_channels)
    for (int64_t first = 0; first < column_bytes; first += 32) { // 8 channels
      __m256i low = _mm256_setzero_si256(), high = low;
      for (int64_t k = 0; k < t.kernel; ++k)
        for (int64_t q = 0; q < t.quads; ++q) {
          const uint8_t* x = columns + t.place(pixel, k, q) + first;
          const int8_t* tap = w + (k * t.quads + q) * column_bytes + first;
          low = _mm256_add_epi32(low, product_avx2(x, tap));
          high = _mm256_add_epi32(high, product_avx2(x + 16, tap + 16));
        }
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + first / quad), joined(low, high));
    }
}

bool has_avx2() {
  return __builtin_cpu_supports("avx2");
}

bool has_vnni() {
  return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

constexpr auto all = std::to_array<implementation>({
    {"avx512_vnni", has_vnni, vnni::multiply, vnni::interleave, vnni::multiply_channels, vnni::multiply_to_bytes,
     vnni::multiply_channels_to_bytes},
    {"avx2", has_avx2, multiply_avx2, interleave_avx2, multiply_channels_avx2, nullptr, nullptr},
    {"plain", runs_anywhere, multiply_plainly, interleave_plainly, multiply_channels_plainly, nullptr, nullptr},
});

} // namespace

std::span<const implementation> implementations() {
  return all;
}

const implementation& best() {
  static const implementation& found =
      *std::find_if(all.begin(), all.end(), [](const implementation& i) { return i.is_supported(); });
  return found;
}

void pack_matrix(const uint8_t* b, int64_t row_step, int64_t column_step, int64_t depth, int64_t columns, uint8_t flip,
                 int8_t* to) {
  for (int64_t first = 0; first < columns; first += block_columns) {
    const int64_t width = std::min(block_columns, columns - first);
    for (int64_t row = 0; row < depth; row += quad, to += block_columns * quad) {
      const int64_t height = std::min(quad, depth - row);
      if (width < block_columns || height < quad)
        std::fill_n(to, block_columns * quad, int8_t{0});
      for (int64_t t = 0; t < height; ++t) {
        const uint8_t* from = b + (row + t) * row_step + first * column_step;
        for (int64_t j = 0; j < width; ++j)
          to[j * quad + t] = static_cast<int8_t>(from[j * column_step] ^ flip);
      }
    }
  }
}

std::vector<int8_t> pack_channels(const uint8_t* w, int64_t channels, int64_t lines, int64_t kernel) {
  const int64_t groups = (channels + group_channels - 1) / group_channels, quads = quads_of(lines);
  std::vector<int8_t> packed(static_cast<size_t>(groups * kernel * quads * column_bytes));
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t line = 0; line < lines; ++line)
      for (int64_t k = 0; k < kernel; ++k) {
        const int64_t block = (c / group_channels * kernel + k) * quads + line / quad;
        const int64_t place = place_in_group(c % group_channels) * quad + line % quad;
        packed[static_cast<size_t>(block * column_bytes + place)] =
            static_cast<int8_t>(w[(c * lines + line) * kernel + k]);
      }
  return packed;
}

std::vector<int32_t> column_sums(const panel& b) {
  std::vector<int32_t> sums(static_cast<size_t>(b.blocks * block_columns), 0);
  const int8_t* w = b.data;
  for (int64_t block = 0; block < b.blocks; ++block)
    for (int64_t q = 0; q < b.quads; ++q)
      for (int64_t j = 0; j < block_columns; ++j, w += quad)
        sums[static_cast<size_t>(block * block_columns + j)] += w[0] + w[1] + w[2] + w[3];
  return sums;
}

int32_t sum_of(const uint8_t* a, int64_t count) {
  uint32_t sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += a[i];
  return static_cast<int32_t>(sum);
}

} // namespace troupe::int8

#include "cpu/int8_product.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <immintrin.h>

namespace troupe::int8 {
namespace {

/// Rows and column blocks whose sums stay in registers.
constexpr int64_t tile_rows = 6, tile_blocks = 4;

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

void multiply_channels_plainly(const uint8_t* const* x, int64_t first, int64_t taps, int64_t channels, const int8_t* w,
                               int32_t* sums) {
  std::fill_n(sums, group_channels, 0);
  for (int64_t t = 0; t < taps; ++t) {
    const int8_t* tap = w + t / quad * group_channels * quad + t % quad;
    for (int64_t c = 0; c < channels; ++c)
      sums[place_in_group(c)] += x[t][first + c] * tap[place_in_group(c) * quad];
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

/// Sums of one lane's 16 channels, `count` of which are there.
TROUPE_AVX2 void lane_avx2(const uint8_t* const* x, int64_t first, int64_t count, int64_t taps, const int8_t* w,
                           int32_t* sums) {
  alignas(16) uint8_t rows[quad][16] = {};
  __m256i s[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
  for (int64_t t = 0; t < taps; t += quad, w += group_channels * quad) {
    for (int64_t i = 0; i < quad; ++i)
      std::memcpy(rows[i], x[t + i] + first, static_cast<size_t>(count));
    const auto* loaded = reinterpret_cast<const __m128i*>(rows);
    const __m128i x0 = _mm_load_si128(loaded), x1 = _mm_load_si128(loaded + 1), x2 = _mm_load_si128(loaded + 2),
                  x3 = _mm_load_si128(loaded + 3);
    const __m128i low01 = _mm_unpacklo_epi8(x0, x1), low23 = _mm_unpacklo_epi8(x2, x3);
    const __m128i high01 = _mm_unpackhi_epi8(x0, x1), high23 = _mm_unpackhi_epi8(x2, x3);
    const __m128i y[4] = {_mm_unpacklo_epi16(low01, low23), _mm_unpackhi_epi16(low01, low23),
                          _mm_unpacklo_epi16(high01, high23), _mm_unpackhi_epi16(high01, high23)};
    for (int64_t i = 0; i < 4; ++i) {
      const __m256i v = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w + i * 64)));
      s[i] = _mm256_add_epi32(s[i], _mm256_madd_epi16(_mm256_cvtepu8_epi16(y[i]), v));
    }
  }
  for (int64_t i = 0; i < 4; i += 2) {
    const __m256i both = joined(s[i], s[i + 1]);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(sums + i * 16), _mm256_castsi256_si128(both));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(sums + i * 16 + 16), _mm256_extracti128_si256(both, 1));
  }
}

TROUPE_AVX2 void multiply_channels_avx2(const uint8_t* const* x, int64_t first, int64_t taps, int64_t channels,
                                        const int8_t* w, int32_t* sums) {
  for (int64_t lane = 0; lane * 16 < channels; ++lane)
    lane_avx2(x, first + lane * 16, std::min<int64_t>(16, channels - lane * 16), taps, w + lane * 16, sums + lane * 4);
}

bool has_avx2() {
  return __builtin_cpu_supports("avx2");
}

// -- AVX-512 with VNNI: an instruction adds the four products of a quad without saturation

#define TROUPE_VNNI [[gnu::target("avx512f,avx512bw,avx512vl,avx512vnni")]]

template <int64_t Rows, int64_t Blocks>
TROUPE_VNNI void tile_vnni(const uint8_t* a, int64_t lda, const panel& b, const int8_t* first, int32_t* c,
                           int64_t ldc) {
  const int64_t block_bytes = b.quads * block_columns * quad;
  __m512i sums[Rows][Blocks];
#pragma GCC unroll 6
  for (int64_t row = 0; row < Rows; ++row)
#pragma GCC unroll 4
    for (int64_t i = 0; i < Blocks; ++i)
      sums[row][i] = _mm512_setzero_si512();
  for (int64_t q = 0; q < b.quads; ++q) {
    __m512i w[Blocks];
#pragma GCC unroll 4
    for (int64_t i = 0; i < Blocks; ++i)
      w[i] = _mm512_loadu_si512(first + i * block_bytes + q * block_columns * quad);
#pragma GCC unroll 6
    for (int64_t row = 0; row < Rows; ++row) {
      int32_t bytes;
      std::memcpy(&bytes, a + row * lda + q * quad, sizeof bytes);
      const __m512i x = _mm512_set1_epi32(bytes);
#pragma GCC unroll 4
      for (int64_t i = 0; i < Blocks; ++i)
        sums[row][i] = _mm512_dpbusd_epi32(sums[row][i], x, w[i]);
    }
  }
#pragma GCC unroll 6
  for (int64_t row = 0; row < Rows; ++row)
#pragma GCC unroll 4
    for (int64_t i = 0; i < Blocks; ++i)
      _mm512_storeu_si512(c + row * ldc + i * block_columns, sums[row][i]);
}

template <int64_t Blocks>
TROUPE_VNNI void rows_vnni(const uint8_t* a, int64_t lda, int64_t rows, const panel& b, const int8_t* first, int32_t* c,
                           int64_t ldc) {
  for (; rows >= tile_rows; rows -= tile_rows, a += tile_rows * lda, c += tile_rows * ldc)
    tile_vnni<tile_rows, Blocks>(a, lda, b, first, c, ldc);
  switch (rows) {
    case 5: return tile_vnni<5, Blocks>(a, lda, b, first, c, ldc);
    case 4: return tile_vnni<4, Blocks>(a, lda, b, first, c, ldc);
    case 3: return tile_vnni<3, Blocks>(a, lda, b, first, c, ldc);
    case 2: return tile_vnni<2, Blocks>(a, lda, b, first, c, ldc);
    case 1: return tile_vnni<1, Blocks>(a, lda, b, first, c, ldc);
    default: return;
  }
}

TROUPE_VNNI void multiply_vnni(const uint8_t* a, int64_t lda, int64_t rows, const panel& b, int32_t* c, int64_t ldc) {
  for (int64_t block = 0; block < b.blocks; block += tile_blocks) {
    const int8_t* first = b.data + block * b.quads * block_columns * quad;
    int32_t* to = c + block * block_columns;
    switch (std::min(tile_blocks, b.blocks - block)) {
      case 4: rows_vnni<4>(a, lda, rows, b, first, to, ldc); break;
      case 3: rows_vnni<3>(a, lda, rows, b, first, to, ldc); break;
      case 2: rows_vnni<2>(a, lda, rows, b, first, to, ldc); break;
      default: rows_vnni<1>(a, lda, rows, b, first, to, ldc); break;
    }
  }
}

/// Bytes of four taps are brought together within 16-byte lanes.
TROUPE_VNNI void multiply_channels_vnni(const uint8_t* const* x, int64_t first, int64_t taps, int64_t channels,
                                        const int8_t* w, int32_t* sums) {
  const __mmask64 mask = channels == group_channels ? ~__mmask64{0} : (__mmask64{1} << channels) - 1;
  __m512i s[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
  for (int64_t t = 0; t < taps; t += quad, w += group_channels * quad) {
    const __m512i x0 = _mm512_maskz_loadu_epi8(mask, x[t] + first),
                  x1 = _mm512_maskz_loadu_epi8(mask, x[t + 1] + first);
    const __m512i x2 = _mm512_maskz_loadu_epi8(mask, x[t + 2] + first),
                  x3 = _mm512_maskz_loadu_epi8(mask, x[t + 3] + first);
    const __m512i low01 = _mm512_unpacklo_epi8(x0, x1), low23 = _mm512_unpacklo_epi8(x2, x3);
    const __m512i high01 = _mm512_unpackhi_epi8(x0, x1), high23 = _mm512_unpackhi_epi8(x2, x3);
    s[0] = _mm512_dpbusd_epi32(s[0], _mm512_unpacklo_epi16(low01, low23), _mm512_loadu_si512(w));
    s[1] = _mm512_dpbusd_epi32(s[1], _mm512_unpackhi_epi16(low01, low23), _mm512_loadu_si512(w + 64));
    s[2] = _mm512_dpbusd_epi32(s[2], _mm512_unpacklo_epi16(high01, high23), _mm512_loadu_si512(w + 128));
    s[3] = _mm512_dpbusd_epi32(s[3], _mm512_unpackhi_epi16(high01, high23), _mm512_loadu_si512(w + 192));
  }
  for (int64_t i = 0; i < 4; ++i)
    _mm512_storeu_si512(sums + i * 16, s[i]);
}

bool has_vnni() {
  return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl");
}

constexpr auto all = std::to_array<implementation>({
    {"avx512_vnni", has_vnni, multiply_vnni, multiply_channels_vnni},
    {"avx2", has_avx2, multiply_avx2, multiply_channels_avx2},
    {"plain", runs_anywhere, multiply_plainly, multiply_channels_plainly},
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

std::vector<int8_t> pack_channels(const uint8_t* w, int64_t channels, int64_t taps, uint8_t flip) {
  const int64_t groups = (channels + group_channels - 1) / group_channels, quads = quads_of(taps);
  std::vector<int8_t> packed(static_cast<size_t>(groups * quads * group_channels * quad));
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t t = 0; t < taps; ++t) {
      const int64_t block = (c / group_channels * quads + t / quad) * group_channels;
      packed[static_cast<size_t>((block + place_in_group(c % group_channels)) * quad + t % quad)] =
          static_cast<int8_t>(w[c * taps + t] ^ flip);
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

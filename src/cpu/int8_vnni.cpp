#include "cpu/int8_vnni.hpp"

#include "cpu/int8_round.hpp"
#include "cpu/int8_row_tiles.hpp"

#include <algorithm>
#include <cstring>
#include <immintrin.h>

// GCC 12 warns of its own intrinsics' undefined operands.
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace troupe::int8::vnni {
namespace {

#define TROUPE_VNNI [[gnu::target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]]
#define TROUPE_VNNI_INLINE [[gnu::target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni"), gnu::always_inline]] inline

/// Rows and column blocks, or pixels, whose sums stay in registers.
constexpr int64_t tile_rows = 6, tile_blocks = 4, tile_pixels = 4;

/// Returns the number of the next blocks of `blocks` that make a tile: tiles are of about one width.
constexpr int64_t next_blocks(int64_t blocks) {
  const int64_t tiles = (blocks + tile_blocks - 1) / tile_blocks;
  return (blocks + tiles - 1) / tiles;
}

// -- ends

/// What turns 64 real results into bytes. All are taken as signed; the highest bit of unsigned ones is flipped last.
struct byte_limits {
  __m512i zero, least, most, flip;
};

TROUPE_VNNI_INLINE byte_limits limits_of(const byte_end& e) {
  const int32_t move = e.is_signed ? 0 : -128;
  return {_mm512_set1_epi16(static_cast<int16_t>(e.end.zero + move)),
          _mm512_set1_epi8(static_cast<char>(e.end.least + move)),
          _mm512_set1_epi8(static_cast<char>(e.end.most + move)), _mm512_set1_epi8(static_cast<char>(move))};
}

/// What 16 columns share.
struct column_end {
  __m512i correction;
  __m512 scale, offset;
  quantised_end end;
};

TROUPE_VNNI_INLINE column_end columns_of(const byte_end& e, int64_t first) {
  return {_mm512_loadu_si512(e.correction + first), _mm512_loadu_ps(e.scale + first), _mm512_loadu_ps(e.offset + first),
          e.end};
}

/// Returns a product that is rounded before it is added to anything.
TROUPE_VNNI_INLINE __m512 apart(__m512 product) {
  asm("" : "+v"(product));
  return product;
}

/// Returns ⌊((sum + correction) · scale + offset) / end.scale⌉, halves to even.
TROUPE_VNNI_INLINE __m512i rounded(__m512i sum, const column_end& e) {
  const __m512 whole = _mm512_cvtepi32_ps(_mm512_add_epi32(sum, e.correction));
  const __m512 real = _mm512_add_ps(apart(_mm512_mul_ps(whole, e.scale)), e.offset);
  return avx512_rounded_quotient(real, e.end);
}

/// Packs four registers of integers within 16-byte lanes: 4 of each register's in each lane. Packing and the addition
/// saturate.
TROUPE_VNNI_INLINE __m512i bytes_of(const byte_limits& limits, __m512i y0, __m512i y1, __m512i y2, __m512i y3) {
  const __m512i low = _mm512_adds_epi16(_mm512_packs_epi32(y0, y1), limits.zero);
  const __m512i high = _mm512_adds_epi16(_mm512_packs_epi32(y2, y3), limits.zero);
  const __m512i limited = _mm512_min_epi8(_mm512_max_epi8(_mm512_packs_epi16(low, high), limits.least), limits.most);
  return _mm512_xor_si512(limited, limits.flip);
}

TROUPE_VNNI_INLINE void store_bytes(uint8_t* y, __m512i bytes, int64_t count) {
  if (count >= 64)
    _mm512_storeu_si512(y, bytes);
  else
    _mm512_mask_storeu_epi8(y, (__mmask64{1} << count) - 1, bytes);
}

// -- products

/// Sums of `Rows` rows and `Blocks` blocks, the first of which is at `w`.
template <int64_t Rows, int64_t Blocks>
TROUPE_VNNI void multiply_tile(const uint8_t* a, int64_t lda, const int8_t* w, int64_t quads, int32_t* c, int64_t ldc) {
  const int64_t block_bytes = quads * block_columns * quad;
  __m512i sums[Rows][Blocks];
#pragma GCC unroll 6
  for (int64_t row = 0; row < Rows; ++row)
#pragma GCC unroll 4
    for (int64_t i = 0; i < Blocks; ++i)
      sums[row][i] = _mm512_setzero_si512();
  for (int64_t q = 0; q < quads; ++q) {
    __m512i of_block[Blocks];
#pragma GCC unroll 4
    for (int64_t i = 0; i < Blocks; ++i)
      of_block[i] = _mm512_loadu_si512(w + i * block_bytes + q * block_columns * quad);
#pragma GCC unroll 6
    for (int64_t row = 0; row < Rows; ++row) {
      int32_t bytes;
      std::memcpy(&bytes, a + row * lda + q * quad, sizeof bytes);
      const __m512i x = _mm512_set1_epi32(bytes);
#pragma GCC unroll 4
      for (int64_t i = 0; i < Blocks; ++i)
        sums[row][i] = _mm512_dpbusd_epi32(sums[row][i], x, of_block[i]);
    }
  }
#pragma GCC unroll 6
  for (int64_t row = 0; row < Rows; ++row)
#pragma GCC unroll 4
    for (int64_t i = 0; i < Blocks; ++i)
      _mm512_storeu_si512(c + row * ldc + i * block_columns, sums[row][i]);
}

/// Where sums go as they are.
struct sums_end {
  int32_t* c;
  int64_t ldc;

  template <int64_t Rows, int64_t Blocks>
  void run(const uint8_t* a, int64_t lda, int64_t row, const panel& b, int64_t block) const {
    multiply_tile<Rows, Blocks>(a, lda, b.data + block * b.quads * block_columns * quad, b.quads,
                                c + row * ldc + block * block_columns, ldc);
  }
};

/// Where sums go as bytes. A tile's pass through the first-level cache: kept in registers to the end, some are spilled
/// in the loop over the depth.
struct bytes_end {
  const byte_end& end;
  int64_t columns;
  uint8_t* y;
  int64_t y_step;

  template <int64_t Rows, int64_t Blocks>
  TROUPE_VNNI void run(const uint8_t* a, int64_t lda, int64_t row, const panel& b, int64_t block) const {
    alignas(64) int32_t sums[Rows * Blocks * block_columns];
    multiply_tile<Rows, Blocks>(a, lda, b.data + block * b.quads * block_columns * quad, b.quads, sums,
                                Blocks * block_columns);
    const int64_t first = block * block_columns, count = std::min(columns - first, Blocks * block_columns);
    const byte_limits limits = limits_of(end);
    // Each lane has 4 bytes of each block; these become 16 of each.
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    column_end of_block[Blocks];
#pragma GCC unroll 4
    for (int64_t j = 0; j < Blocks; ++j)
      of_block[j] = columns_of(end, first + j * block_columns);
    uint8_t* to = y + row * y_step + first;
    for (int64_t i = 0; i < Rows; ++i, to += y_step) {
      __m512i whole[4] = {};
#pragma GCC unroll 4
      for (int64_t j = 0; j < Blocks; ++j)
        whole[j] = rounded(_mm512_load_si512(sums + (i * Blocks + j) * block_columns), of_block[j]);
      const __m512i bytes = bytes_of(limits, whole[0], whole[1], whole[2], whole[3]);
      store_bytes(to, _mm512_permutexvar_epi32(order, bytes), count);
    }
  }
};

template <int64_t Blocks, class End>
void walk_rows(const uint8_t* a, int64_t lda, int64_t rows, const panel& b, int64_t block, const End& end) {
  for_row_tiles<tile_rows>(
      rows, [&]<int64_t Rows>(int64_t row) { end.template run<Rows, Blocks>(a + row * lda, lda, row, b, block); });
}

template <class End>
void walk(const uint8_t* a, int64_t lda, int64_t rows, const panel& b, const End& end) {
  for (int64_t block = 0; block < b.blocks;) {
    const int64_t width = next_blocks(b.blocks - block);
    switch (width) {
      case 4: walk_rows<4>(a, lda, rows, b, block, end); break;
      case 3: walk_rows<3>(a, lda, rows, b, block, end); break;
      case 2: walk_rows<2>(a, lda, rows, b, block, end); break;
      default: walk_rows<1>(a, lda, rows, b, block, end); break;
    }
    block += width;
  }
}

// -- depthwise convolutions

/// Sums over all taps of `Pixels` pixels.
template <int64_t Pixels>
TROUPE_VNNI void multiply_pixels(const uint8_t* columns, const line_taps& t, const int8_t* w, int32_t* to) {
  const int64_t step = t.place(1, 0, 0);
  __m512i sums[Pixels][4];
#pragma GCC unroll 4
  for (int64_t p = 0; p < Pixels; ++p)
#pragma GCC unroll 4
    for (int64_t i = 0; i < 4; ++i)
      sums[p][i] = _mm512_setzero_si512();
  for (int64_t k = 0; k < t.kernel; ++k)
    for (int64_t q = 0; q < t.quads; ++q, w += column_bytes) {
      const uint8_t* x = columns + t.place(0, k, q);
#pragma GCC unroll 4
      for (int64_t i = 0; i < 4; ++i) {
        __m512i tap = _mm512_loadu_si512(w + i * 64);
        asm("" : "+v"(tap)); // loaded once: GCC would load it for each pixel
#pragma GCC unroll 4
        for (int64_t p = 0; p < Pixels; ++p)
          sums[p][i] = _mm512_dpbusd_epi32(sums[p][i], _mm512_loadu_si512(x + p * step + i * 64), tap);
      }
    }
#pragma GCC unroll 4
  for (int64_t p = 0; p < Pixels; ++p)
#pragma GCC unroll 4
    for (int64_t i = 0; i < 4; ++i)
      _mm512_storeu_si512(to + p * group_channels + i * 16, sums[p][i]);
}

/// Packing works within lanes, as the interleaving did: so channels are in order again.
template <int64_t Pixels>
TROUPE_VNNI_INLINE void store_pixels(const byte_end& end, const __m512i (&whole)[Pixels][4], int64_t channels,
                                     uint8_t* y, int64_t y_step) {
  const byte_limits limits = limits_of(end);
#pragma GCC unroll 4
  for (int64_t p = 0; p < Pixels; ++p)
    store_bytes(y + p * y_step, bytes_of(limits, whole[p][0], whole[p][1], whole[p][2], whole[p][3]), channels);
}

template <int64_t Pixels>
TROUPE_VNNI void pixels_to_bytes(const uint8_t* columns, const line_taps& t, const int8_t* w, const byte_end& end,
                                 int64_t channels, uint8_t* y, int64_t y_step) {
  alignas(64) int32_t sums[Pixels * group_channels];
  multiply_pixels<Pixels>(columns, t, w, sums);
  __m512i whole[Pixels][4];
#pragma GCC unroll 4
  for (int64_t i = 0; i < 4; ++i) {
    const column_end of_block = columns_of(end, i * 16);
#pragma GCC unroll 4
    for (int64_t p = 0; p < Pixels; ++p)
      whole[p][i] = rounded(_mm512_load_si512(sums + p * group_channels + i * 16), of_block);
  }
  store_pixels<Pixels>(end, whole, channels, y, y_step);
}

/// The same for the usual kernel, 3 columns of up to 4 lines: neighbours share columns in registers.
template <int64_t Stride>
TROUPE_VNNI void four_pixels_of_three(const uint8_t* columns, const int8_t* w, const byte_end& end, int64_t channels,
                                      uint8_t* y, int64_t y_step) {
  constexpr int64_t count = (tile_pixels - 1) * Stride + 3;
  __m512i whole[tile_pixels][4];
#pragma GCC unroll 4
  for (int64_t i = 0; i < 4; ++i) {
    const column_end of_block = columns_of(end, i * 16);
    __m512i tap[3], x[count];
#pragma GCC unroll 3
    for (int64_t k = 0; k < 3; ++k)
      tap[k] = _mm512_loadu_si512(w + k * column_bytes + i * 64);
#pragma GCC unroll 9
    for (int64_t k = 0; k < count; ++k)
      x[k] = _mm512_loadu_si512(columns + k * column_bytes + i * 64);
#pragma GCC unroll 4
    for (int64_t p = 0; p < tile_pixels; ++p) {
      __m512i sum = _mm512_setzero_si512();
#pragma GCC unroll 3
      for (int64_t k = 0; k < 3; ++k)
        sum = _mm512_dpbusd_epi32(sum, x[p * Stride + k], tap[k]);
      whole[p][i] = rounded(sum, of_block);
    }
  }
  store_pixels<tile_pixels>(end, whole, channels, y, y_step);
}

TROUPE_VNNI void tile_to_bytes(const uint8_t* columns, const line_taps& t, const int8_t* w, const byte_end& end,
                               int64_t channels, uint8_t* y, int64_t y_step) {
  const bool of_three = t.kernel == 3 && t.quads == 1 && t.dilation == 1;
  if (of_three && t.stride == 1)
    return four_pixels_of_three<1>(columns, w, end, channels, y, y_step);
  if (of_three && t.stride == 2)
    return four_pixels_of_three<2>(columns, w, end, channels, y, y_step);
  pixels_to_bytes<tile_pixels>(columns, t, w, end, channels, y, y_step);
}

} // namespace

void multiply(const uint8_t* a, int64_t lda, int64_t rows, const panel& b, int32_t* c, int64_t ldc) {
  walk(a, lda, rows, b, sums_end{c, ldc});
}

void multiply_to_bytes(const uint8_t* a, int64_t lda, int64_t rows, const panel& b, const byte_end& end,
                       int64_t columns, uint8_t* y, int64_t y_step) {
  walk(a, lda, rows, b, bytes_end{end, columns, y, y_step});
}

TROUPE_VNNI void interleave(const line_bytes& x, int64_t count, int64_t channels, uint8_t flip, uint8_t* columns) {
  const __mmask64 mask = channels >= group_channels ? ~__mmask64{0} : (__mmask64{1} << channels) - 1;
  const __m512i flips = _mm512_set1_epi8(static_cast<char>(flip));
  for (int64_t q = 0; q < x.quads; ++q) {
    const uint8_t* const line[] = {x.lines[q * quad], x.lines[q * quad + 1], x.lines[q * quad + 2],
                                   x.lines[q * quad + 3]};
    uint8_t* to = columns + q * column_bytes;
    for (int64_t at = 0; at < count * x.step; at += x.step, to += x.quads * column_bytes) {
      __m512i row[quad];
#pragma GCC unroll 4
      for (int64_t i = 0; i < quad; ++i)
        row[i] = _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, line[i] + at), flips);
      const __m512i low01 = _mm512_unpacklo_epi8(row[0], row[1]), low23 = _mm512_unpacklo_epi8(row[2], row[3]);
      const __m512i high01 = _mm512_unpackhi_epi8(row[0], row[1]), high23 = _mm512_unpackhi_epi8(row[2], row[3]);
      _mm512_storeu_si512(to, _mm512_unpacklo_epi16(low01, low23));
      _mm512_storeu_si512(to + 64, _mm512_unpackhi_epi16(low01, low23));
      _mm512_storeu_si512(to + 128, _mm512_unpacklo_epi16(high01, high23));
      _mm512_storeu_si512(to + 192, _mm512_unpackhi_epi16(high01, high23));
    }
  }
}

void multiply_channels(const uint8_t* columns, const line_taps& t, int64_t pixels, const int8_t* w, int32_t* sums) {
  for (int64_t p = 0; p < pixels; ++p)
    multiply_pixels<1>(columns + t.place(p, 0, 0), t, w, sums + p * group_channels);
}

void multiply_channels_to_bytes(const uint8_t* columns, const line_taps& t, int64_t pixels, const int8_t* w,
                                const byte_end& end, int64_t channels, uint8_t* y, int64_t y_step) {
  int64_t p = 0;
  for (; p + tile_pixels <= pixels; p += tile_pixels)
    tile_to_bytes(columns + t.place(p, 0, 0), t, w, end, channels, y + p * y_step, y_step);
  for (; p < pixels; ++p)
    pixels_to_bytes<1>(columns + t.place(p, 0, 0), t, w, end, channels, y + p * y_step, y_step);
}

} // namespace troupe::int8::vnni

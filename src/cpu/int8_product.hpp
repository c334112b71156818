// Products of matrices of bytes with 32-bit sums that wrap, exact on every processor: the core of the quantised
// kernels.
//
// A is uint8 and row-major; B is int8 and packed: blocks of 16 columns, each of quads of 4 rows, [columns / 16][depth /
// 4][16][4], with zeros beyond its end. int8 operands on the left and uint8 ones on the right have their highest bit
// flipped, which moves them and their zero point by 128. Zero points are not known here: `int8_finish.hpp` corrects the
// sums for them.
#pragma once

#include "cpu/int8_rows.hpp"
#include "cpu/weight_cache.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace troupe::int8 {

inline constexpr int64_t block_columns = 16, quad = 4;
inline constexpr uint8_t sign_bit = 0x80;

constexpr int64_t blocks_of(int64_t columns) {
  return (columns + block_columns - 1) / block_columns;
}
constexpr int64_t quads_of(int64_t depth) {
  return (depth + quad - 1) / quad;
}

/// A panel of a packed B: `blocks` blocks, each of `quads` quads.
struct panel {
  const int8_t* data;
  int64_t quads, blocks;
};

/// C[rows][16 · blocks] = A · B: rows of A are `lda` bytes apart and readable for 4 · quads bytes, rows of C `ldc`
/// elements apart.
using product_function = void (*)(const uint8_t* a, int64_t lda, int64_t rows, const panel& b, int32_t* c, int64_t ldc);

/// The same, ended in registers as bytes: `columns` of each row, the first of which `end` begins with, at `y`; its rows
/// are `y_step` bytes apart.
using product_to_bytes_function = void (*)(const uint8_t* a, int64_t lda, int64_t rows, const panel& b,
                                           const byte_end& end, int64_t columns, uint8_t* y, int64_t y_step);

// Depthwise convolutions take up to 64 channels of a line of pixels at a time. The lines of the input that meet them
// are interleaved first: a column has for each quad of lines 64 channels, in packed order, of 4 bytes each. Then a
// pixel's taps are columns, and what is interleaved once serves all pixels that it is a tap of.

inline constexpr int64_t group_channels = 64, column_bytes = group_channels * quad;

/// Returns where channel `c` of 64 is among its group's packed channels: they are in the order in which bytes of four
/// rows come out of unpacking within 16-byte lanes, 0 to 3 of each lane, then 4 to 7 …
constexpr int64_t place_in_group(int64_t c) {
  return c % 16 / 4 * 16 + c / 16 * 4 + c % 4;
}

/// Lines of an image, 4 for each quad; pixels are `step` bytes apart. Lines that are added to fill a quad may be any.
struct line_bytes {
  const uint8_t* const* lines;
  int64_t quads, step;
};

/// Interleaves `count` columns of up to 64 channels, all bytes XORed with `flip`.
using interleave_function = void (*)(const line_bytes& x, int64_t count, int64_t channels, uint8_t flip,
                                     uint8_t* columns);

/// Which columns pixels take: tap k of pixel p is column p · stride + k · dilation.
struct line_taps {
  int64_t kernel, stride, dilation, quads;

  /// Returns where among the columns' bytes quad `q` of tap `k` of `pixel` is.
  int64_t place(int64_t pixel, int64_t k, int64_t q) const {
    return ((pixel * stride + k * dilation) * quads + q) * column_bytes;
  }
};

/// Sums of 64 packed channels of each pixel; weights are as `pack_channels` makes them.
using channels_function = void (*)(const uint8_t* columns, const line_taps& t, int64_t pixels, const int8_t* w,
                                   int32_t* sums);

/// The same, ended in registers as bytes: `channels` of each pixel, at `y`; pixels are `y_step` bytes apart. `end` is
/// for 64 channels in packed order.
using channels_to_bytes_function = void (*)(const uint8_t* columns, const line_taps& t, int64_t pixels, const int8_t* w,
                                            const byte_end& end, int64_t channels, uint8_t* y, int64_t y_step);

struct implementation {
  std::string_view name;
  bool (*is_supported)();
  product_function multiply;
  interleave_function interleave;
  channels_function multiply_channels;
  product_to_bytes_function multiply_to_bytes;           // null: there is none
  channels_to_bytes_function multiply_channels_to_bytes; // null: there is none
};

/// Returns all implementations, fastest first; the last runs on every processor.
std::span<const implementation> implementations();
/// Returns the fastest that this processor has.
const implementation& best();

/// Packs one matrix of `depth` rows and `columns` columns, row r and column c of which is at `b[r · row_step + c ·
/// column_step]`; `flip` is 0 or `sign_bit`.
void pack_matrix(const uint8_t* b, int64_t row_step, int64_t column_step, int64_t depth, int64_t columns, uint8_t flip,
                 int8_t* to);

/// Packs the weights of a depthwise convolution, `w[(channel · lines + line) · kernel + k]`: groups of 64 channels, in
/// each the kernel's columns, each of quads of lines.
std::vector<int8_t> pack_channels(const uint8_t* w, int64_t channels, int64_t lines, int64_t kernel);

/// Returns the sum of each column of a packed panel, 16 · blocks of them.
std::vector<int32_t> column_sums(const panel& b);

/// Returns Σ a[i].
int32_t sum_of(const uint8_t* a, int64_t count);

} // namespace troupe::int8

// Products of matrices of bytes with 32-bit sums that wrap, exact on every processor: the core of the quantised kernels.
//
// A is uint8 and row-major; B is int8 and packed: blocks of 16 columns, each of quads of 4 rows, [columns / 16][depth / 4][16][4], with
// zeros beyond its end. int8 operands on the left and uint8 ones on the right have their highest bit flipped, which moves them and
// their zero point by 128. Zero points are not known here: `int8_finish.hpp` corrects the sums for them.
#pragma once

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

/// C[rows][16 · blocks] = A · B: rows of A are `lda` bytes apart and readable for 4 · quads bytes, rows of C `ldc` elements apart.
using product_function = void (*)(const uint8_t* a, int64_t lda, int64_t rows, const panel& b, int32_t* c, int64_t ldc);

/// Sums of up to 64 channels of a depthwise convolution, Σ over taps of x[tap][first + channel] · w[tap][channel]; 64 are written, in the order
/// of packed channels. There are `taps` (a multiple of 4) taps; weights are as `pack_channels` makes them.
using channels_function = void (*)(const uint8_t* const* x, int64_t first, int64_t taps, int64_t channels,
                                   const int8_t* w, int32_t* sums);
inline constexpr int64_t group_channels = 64;

/// Returns where channel `c` of 64 is among its group's packed channels: they are in the order in which bytes of four rows come out of
/// unpacking within 16-byte lanes, 0 to 3 of each lane, then 4 to 7 …
constexpr int64_t place_in_group(int64_t c) {
  return c % 16 / 4 * 16 + c / 16 * 4 + c % 4;
}

struct implementation {
  std::string_view name;
  bool (*is_supported)();
  product_function multiply;
  channels_function multiply_channels;
};

/// Returns all implementations, fastest first; the last runs on every processor.
std::span<const implementation> implementations();
/// Returns the fastest that this processor has.
const implementation& best();

/// Packs one matrix of `depth` rows and `columns` columns, row r and column c of which is at `b[r · row_step + c · column_step]`; `flip` is 0
/// or `sign_bit`.
void pack_matrix(const uint8_t* b, int64_t row_step, int64_t column_step, int64_t depth, int64_t columns, uint8_t flip,
                 int8_t* to);

/// Packs the weights of a depthwise convolution, `w[channel · taps + tap]`: groups of 64 channels, in each quads of taps.
std::vector<int8_t> pack_channels(const uint8_t* w, int64_t channels, int64_t taps, uint8_t flip);

/// Returns the sum of each column of a packed panel, 16 · blocks of them.
std::vector<int32_t> column_sums(const panel& b);

/// Returns Σ a[i].
int32_t sum_of(const uint8_t* a, int64_t count);

} // namespace troupe::int8

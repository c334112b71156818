#include "cpu/int8_product.hpp"

#include "base/cpu_feature.hpp"
#include "cpu/int8_avx2.hpp"
#include "cpu/int8_avx2_vnni.hpp"
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

bool has_avx2() {
  return cpu_has(cpu_feature::avx2);
}

bool has_avx2_vnni() {
  return cpu_has(cpu_feature::avx2_vnni);
}

bool has_vnni() {
  return cpu_has(cpu_feature::avx512_vnni);
}

constexpr auto all = std::to_array<implementation>({
    {"avx512_vnni", has_vnni, vnni::multiply, vnni::interleave, vnni::multiply_channels, vnni::multiply_to_bytes,
     vnni::multiply_channels_to_bytes},
    {"avx2_vnni", has_avx2_vnni, avx2_vnni::multiply, avx2::interleave, avx2_vnni::multiply_channels,
     avx2_vnni::multiply_to_bytes, avx2_vnni::multiply_channels_to_bytes},
    {"avx2", has_avx2, avx2::multiply, avx2::interleave, avx2::multiply_channels, avx2::multiply_to_bytes,
     avx2::multiply_channels_to_bytes},
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

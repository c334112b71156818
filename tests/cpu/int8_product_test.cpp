// Every implementation of products of bytes beside the plain one, and beside the sums by definition.
#include "cpu/int8_product.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

using namespace troupe;

namespace {

std::vector<uint8_t> random_bytes(int64_t count, std::minstd_rand& random) {
  std::uniform_int_distribution<int> values(0, 255);
  std::vector<uint8_t> bytes(static_cast<size_t>(count));
  for (uint8_t& b : bytes)
    b = static_cast<uint8_t>(values(random));
  return bytes;
}

TEST_CASE("every implementation of products of bytes gives the plain one's sums", "[cpu][quantised]") {
  std::minstd_rand random(3);
  for (const int8::implementation& i : int8::implementations()) {
    if (!i.is_supported())
      continue;
    for (const auto& [rows, depth, columns] : std::vector<std::array<int64_t, 3>>{
             {1, 1, 1}, {6, 8, 64}, {11, 130, 81}, {5, 36, 48}, {3, 1024, 16}, {14, 1301, 33}}) {
      INFO(i.name << " " << rows << " " << depth << " " << columns);
      const int64_t quads = int8::quads_of(depth), blocks = int8::blocks_of(columns), step = 4 * quads,
                    width = 16 * blocks;
      // 255 · 127 everywhere saturates 16 bits.
      std::vector<uint8_t> a = random_bytes(rows * step, random), b = random_bytes(depth * columns, random);
      std::fill_n(a.begin(), step, uint8_t{255});
      std::fill_n(b.begin(), columns, uint8_t{127});
      std::vector<int8_t> packed(static_cast<size_t>(quads * blocks * 64));
      int8::pack_matrix(b.data(), columns, 1, depth, columns, 0, packed.data());
      std::vector<int32_t> want(static_cast<size_t>(rows * width)), got(want.size(), -1);
      int8::implementations().back().multiply(a.data(), step, rows, {packed.data(), quads, blocks}, want.data(), width);
      i.multiply(a.data(), step, rows, {packed.data(), quads, blocks}, got.data(), width);
      CHECK(got == want);
    }
  }
}

/// Parameters of the ends of 64 columns, or of fewer.
struct end_parameters {
  std::vector<int32_t> correction;
  std::vector<float> scale, offset;
  int8::quantised_end end;
  bool is_signed;

  end_parameters(int64_t columns, bool is_signed_, std::minstd_rand& random) : is_signed(is_signed_) {
    constexpr float y_scale = 0.7f;
    end = {.scale = y_scale, .inverse = 1 / y_scale, .zero = 130, .least = 3, .most = 250};
    if (is_signed)
      end.zero = -7, end.least = -100, end.most = 120;
    std::uniform_int_distribution<int32_t> corrections(-90'000, 90'000);
    std::uniform_real_distribution<float> scales(1e-5f, 2e-3f), offsets(-20, 20);
    for (int64_t i = 0; i < columns + int8::spare_columns; ++i) {
      correction.push_back(corrections(random));
      scale.push_back(i % 7 == 3 ? 1e3f : scales(random)); // far beyond all bytes
      offset.push_back(offsets(random));
    }
  }

  int8::byte_end byte_end() const { return {correction.data(), scale.data(), offset.data(), end, is_signed}; }

  /// The byte that `sum` of column `i` ends as.
  uint8_t of(int32_t sum, size_t i) const {
    const float product = static_cast<float>(sum + correction[i]) * scale[i], real = product + offset[i];
    const auto rounded = static_cast<int32_t>(std::nearbyint(real / end.scale)) + end.zero;
    return static_cast<uint8_t>(std::clamp(rounded, end.least, end.most));
  }
};

TEST_CASE("products that end as bytes in registers are sums that end so", "[cpu][quantised]") {
  std::minstd_rand random(5);
  for (const int8::implementation& i : int8::implementations())
    for (const int64_t columns : {1, 15, 16, 17, 64, 80, 100, 150, 200})
      for (const bool is_signed : {false, true}) {
        if (!i.is_supported() || !i.multiply_to_bytes)
          continue;
        for (const int64_t rows : {1, 2, 3, 4, 5, 6, 13}) {
          INFO(i.name << " " << rows << " " << columns << " " << is_signed);
          const int64_t quads = 5, blocks = int8::blocks_of(columns), step = 4 * quads, width = 16 * blocks;
          const std::vector<uint8_t> a = random_bytes(rows * step, random), b = random_bytes(step * columns, random);
          std::vector<int8_t> packed(static_cast<size_t>(quads * blocks * 64));
          int8::pack_matrix(b.data(), columns, 1, step, columns, 0, packed.data());
          std::vector<int32_t> sums(static_cast<size_t>(rows * width));
          i.multiply(a.data(), step, rows, {packed.data(), quads, blocks}, sums.data(), width);
          const end_parameters end(columns, is_signed, random);
          std::vector<uint8_t> got(static_cast<size_t>(rows * (columns + 3)), 77), want = got;
          i.multiply_to_bytes(a.data(), step, rows, {packed.data(), quads, blocks}, end.byte_end(), columns, got.data(),
                              columns + 3);
          for (int64_t row = 0; row < rows; ++row)
            for (int64_t c = 0; c < columns; ++c)
              want[static_cast<size_t>(row * (columns + 3) + c)] =
                  end.of(sums[static_cast<size_t>(row * width + c)], static_cast<size_t>(c));
          CHECK(got == want);
        }
      }
}

/// A line of a depthwise convolution.
struct channels_row {
  int64_t channels, lines, kernel, pixels, stride = 1, dilation = 1;
};

TEST_CASE("lines of depthwise convolutions are sums over their taps", "[cpu][quantised]") {
  std::minstd_rand random(7);
  for (const int8::implementation& i : int8::implementations())
    for (const channels_row& row : {channels_row{1, 1, 1, 1},
                                    {64, 3, 3, 9},
                                    {37, 3, 3, 4, 2},
                                    {63, 5, 5, 6, 1, 2},
                                    {16, 4, 1, 7, 3},
                                    {48, 9, 2, 5, 2, 3}})
      for (const uint8_t flip : {uint8_t{0}, int8::sign_bit}) {
        if (!i.is_supported())
          continue;
        const auto& [channels, lines, kernel, pixels, stride, dilation] = row;
        INFO(i.name << " " << channels << " channels, " << lines << " x " << kernel << " taps, " << int{flip});
        const int64_t count = (pixels - 1) * stride + (kernel - 1) * dilation + 1, quads = int8::quads_of(lines);
        const std::vector<uint8_t> x = random_bytes(lines * count * channels, random),
                                   w = random_bytes(channels * lines * kernel, random);
        const std::vector<int8_t> packed = int8::pack_channels(w.data(), channels, lines, kernel);
        std::vector<const uint8_t*> from(static_cast<size_t>(4 * quads), x.data());
        for (int64_t line = 0; line < lines; ++line)
          from[static_cast<size_t>(line)] = x.data() + line * count * channels;
        std::vector<uint8_t> columns(static_cast<size_t>(count * quads * int8::column_bytes));
        i.interleave({from.data(), quads, channels}, count, channels, flip, columns.data());
        const int8::line_taps taps{kernel, stride, dilation, quads};
        std::vector<int32_t> sums(static_cast<size_t>(pixels * 64)), want(static_cast<size_t>(pixels * channels));
        i.multiply_channels(columns.data(), taps, pixels, packed.data(), sums.data());
        bool equal_sums = true;
        for (int64_t p = 0; p < pixels; ++p)
          for (int64_t c = 0; c < channels; ++c) {
            int32_t& sum = want[static_cast<size_t>(p * channels + c)];
            for (int64_t line = 0; line < lines; ++line)
              for (int64_t k = 0; k < kernel; ++k)
                sum += (x[static_cast<size_t>((line * count + p * stride + k * dilation) * channels + c)] ^ flip) *
                       static_cast<int8_t>(w[static_cast<size_t>((c * lines + line) * kernel + k)]);
            equal_sums &= sum == sums[static_cast<size_t>(p * 64 + int8::place_in_group(c))];
          }
        CHECK(equal_sums);
        if (!i.multiply_channels_to_bytes)
          continue;
        const end_parameters end(64, flip != 0, random);
        std::vector<uint8_t> got(static_cast<size_t>(pixels * (channels + 2)), 77), bytes = got;
        i.multiply_channels_to_bytes(columns.data(), taps, pixels, packed.data(), end.byte_end(), channels, got.data(),
                                     channels + 2);
        for (int64_t p = 0; p < pixels; ++p)
          for (int64_t c = 0; c < channels; ++c)
            bytes[static_cast<size_t>(p * (channels + 2) + c)] =
                end.of(want[static_cast<size_t>(p * channels + c)], static_cast<size_t>(int8::place_in_group(c)));
        CHECK(got == bytes);
      }
}

} // namespace

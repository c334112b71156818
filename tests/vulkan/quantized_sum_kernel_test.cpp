// troupe.QuantizedConv and troupe.QuantizedMatMul that end in a sum with a residual, on the GPU: the reference's bytes
// exactly.
#include "support/byte_cases.hpp"
#include "support/catch.hpp"
#include "support/graph_builder.hpp"

#include <cmath>
#include <limits>
#include <numeric>

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr dtype u8 = dtype::uint8, i8 = dtype::int8;
constexpr float infinity = std::numeric_limits<float>::infinity();

/// How a sum ends; cases take these in turns.
struct sum_end {
  dtype y, r, z;
  bool zeros;      // y, r and z have zero points
  float low, high; // limits of the sum
  bool constant;   // B
};

constexpr auto ends = std::to_array<sum_end>({
    {u8, u8, u8, true, -infinity, infinity, true},
    {i8, u8, i8, true, 0, infinity, true},
    {u8, i8, u8, false, -infinity, 9.f, true},
    {u8, u8, i8, true, -4.f, 12.f, false},
    {i8, i8, u8, true, 0, infinity, true},
});

/// A result without a zero point is uint8, so an int8 one has one.
tensor zero_point(const sum_end& e, dtype type, uint64_t seed) {
  return e.zeros || type == i8 ? random_integers(type, {}, seed, 40, 90) : tensor();
}

/// Scales are such that the product and the residual spread over most of their bytes, and the sum beyond.
void check_sum(const char* op, const shape& a, const shape& b, const shape& y, int64_t depth, const sum_end& e,
               attributes attrs = {}) {
  INFO(op << " " << to_string(a) << " " << to_string(b) << " " << to_string(e.y) << to_string(e.r) << to_string(e.z));
  const int64_t columns = op == std::string("QuantizedConv") ? b[0] : b.back();
  const float each = 1.f / std::sqrt(static_cast<float>(depth));
  attrs.set("sum_low", e.low);
  attrs.set("sum_high", e.high);
  kernel_case c{.op = op, .attrs = std::move(attrs), .domain = "troupe"};
  c.inputs = {bytes(u8, a, 1),
              bytes(i8, b, 2),
              random_floats({}, 3, 0.01f, 0.02f),
              random_floats({columns}, 4, 0.02f * each, 0.1f * each),
              random_integers(u8, {}, 5, 100, 150),
              tensor(),
              random_floats({columns}, 7, -2, 2),
              random_floats({}, 8, 0.03f, 0.05f),
              zero_point(e, e.y, 9),
              bytes(e.r, y, 11),
              random_floats({}, 12, 0.02f, 0.06f),
              zero_point(e, e.r, 13),
              random_floats({}, 14, 0.05f, 0.09f),
              zero_point(e, e.z, 15)};
  c.constants = e.constant ? 1u << byte_inputs::b : 0;
  check_byte_kernels(std::move(c));
}

struct conv_sizes {
  shape x, w, y; // channels of a group in w
  int64_t group = 1, pad = 0;
};

void check_conv(const conv_sizes& s, const sum_end& e) {
  const size_t axes = s.x.size() - 2;
  check_sum("QuantizedConv", s.x, s.w, s.y, volume(std::span(s.w).subspan(1)), e,
            attrs_of({{"group", s.group}, {"pads", std::vector<int64_t>(2 * axes, s.pad)}}));
}

} // namespace

TEST_CASE("GPU convolutions of bytes end in sums", "[vulkan][quantised]") {
  const std::vector<conv_sizes> sizes{
      {{2, 16, 5, 6}, {24, 16, 1, 1}, {2, 24, 5, 6}},       // words of pixels
      {{1, 8, 6, 5}, {7, 8, 3, 3}, {1, 7, 6, 5}, 1, 1},     // bytes
      {{1, 32, 6, 4}, {40, 16, 3, 3}, {1, 40, 6, 4}, 2, 1}, // groups
      {{1, 1, 6, 6}, {4, 1, 3, 3}, {1, 4, 4, 4}},           // one channel a group: by the kernels of others
      {{0, 4, 5, 5}, {4, 4, 3, 3}, {0, 4, 3, 3}},           // no image
  };
  size_t turn = 0;
  for (const conv_sizes& s : sizes)
    check_conv(s, ends[turn++ % ends.size()]);
}

TEST_CASE("GPU products of bytes end in sums", "[vulkan][quantised]") {
  for (const sum_end& e : ends) {
    check_sum("QuantizedMatMul", {70, 20}, {20, 64}, {70, 64}, 20, e);
    check_sum("QuantizedMatMul", {3, 37}, {37, 10}, {3, 10}, 37, e);
  }
  check_sum("QuantizedMatMul", {2, 3, 4, 16}, {2, 3, 16, 5}, {2, 3, 4, 5}, 16, ends[0]);
}

TEST_CASE("GPU sums of bytes keep to the range; NaN gives the low end", "[vulkan][quantised]") {
  // Products by the identity are the elements themselves, less 100; a residual of 0 times an infinite scale is NaN.
  const int64_t n = 256;
  std::vector<uint8_t> x(n);
  std::iota(x.begin(), x.end(), uint8_t{0});
  std::vector<int8_t> identity(n * n, 0), residual(n, 0);
  for (int64_t i = 0; i < n; ++i)
    identity[static_cast<size_t>(i * n + i)] = 1;
  residual[5] = 1, residual[6] = -1;
  const auto single = [](auto v) { return tensor::of<decltype(v)>({}, std::vector{v}); };
  for (const auto& [r_scale, z_scale] : {std::pair(0.5f, 2.f), {infinity, 1.f}, {1.f, 0.f}, {1.f, 1e-40f}})
    for (const bool limited : {false, true})
      check_byte_kernels({.op = "QuantizedMatMul",
                          .inputs = {tensor::of<uint8_t>({1, n}, x), tensor::of<int8_t>({n, n}, identity), single(1.f),
                                     single(1.f), single(uint8_t{100}), tensor(), tensor(), single(1.f),
                                     single(uint8_t{100}), tensor::of<int8_t>({1, n}, residual), single(r_scale),
                                     tensor(), single(z_scale), single(uint8_t{7})},
                          .attrs = attrs_of({{"sum_low", limited ? 0.f : -infinity}, {"sum_high", infinity}}),
                          .domain = "troupe",
                          .constants = 2});
}

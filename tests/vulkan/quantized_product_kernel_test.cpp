// troupe.QuantizedConv and troupe.QuantizedMatMul on the GPU: bytes have to be the reference's exactly, floats nearly.
#include "ops/activation.hpp"
#include "support/byte_cases.hpp"
#include "support/catch.hpp"
#include "support/graph_builder.hpp"

#include <limits>
#include <numeric>

using namespace troupe;
using namespace troupe::test;

namespace {

/// Properties of a case beside its sizes; cases take these in turns.
struct variety {
  dtype a, b, y; // y: float32 if the result is not quantised
  bool a_zero;
  int b_zero, scales, bias; // 0 none, 1 one for all, 2 one for each column
  activation act;
  bool constant; // B
};

constexpr dtype u8 = dtype::uint8, i8 = dtype::int8, real = dtype::float32;

const std::vector<variety>& varieties() {
  static const std::vector<variety> all{
      {u8, i8, u8, true, 0, 2, 2, {}, true},
      {u8, i8, u8, true, 0, 1, 0, {scalar_code::relu}, true},
      {i8, i8, i8, true, 0, 2, 2, {scalar_code::clip, 0.f, 6.f}, true},
      {i8, i8, real, false, 0, 2, 1, {}, true},
      {u8, u8, u8, true, 1, 1, 2, {}, true},
      {u8, u8, real, true, 2, 2, 0, {scalar_code::leaky_relu, 0.1f}, false},
      {i8, u8, i8, false, 2, 2, 2, {}, true},
      {u8, i8, real, true, 2, 1, 2, {scalar_code::hard_swish}, false},
      {u8, i8, u8, false, 0, 1, 2, {}, false},
  };
  return all;
}

tensor spread(int how, int64_t columns, uint64_t seed, float low, float high) {
  return how == 0 ? tensor() : random_floats(how == 1 ? shape{} : shape{columns}, seed, low, high);
}

/// `depth`: products that a sum has; scales are such that results use the whole range, and beyond.
kernel_case make_case(const char* op, const variety& v, const shape& a, const shape& b, int64_t columns, int64_t depth,
                      attributes attrs) {
  kernel_case c{.op = op, .domain = "troupe"};
  const auto range = 1.f / static_cast<float>(std::max<int64_t>(depth, 1));
  tensor a_scale = random_floats({}, 3, 0.01f, 0.02f);
  c.inputs = {bytes(v.a, a, 1),
              bytes(v.b, b, 2),
              a_scale,
              spread(v.scales, columns, 4, 0.2f * range, range),
              v.a_zero ? bytes(v.a, {}, 5) : tensor(),
              v.b_zero == 0 ? tensor() : bytes(v.b, v.b_zero == 1 ? shape{} : shape{columns}, 6),
              spread(v.bias, columns, 7, -1, 1)};
  if (v.y != real)
    c.inputs.insert(c.inputs.end(), {random_floats({}, 8, 0.01f, 0.03f), bytes(v.y, {}, 9)});
  set_activation(attrs, v.act);
  c.attrs = std::move(attrs);
  c.constants = v.constant ? 1u << byte_inputs::b : 0;
  return c;
}

struct conv_sizes {
  shape x, w; // channels of a group in w
  int64_t group = 1, stride = 1, pad = 0, dilation = 1;
};

void check_conv(const conv_sizes& s, const variety& v) {
  const size_t axes = s.x.size() - 2;
  attributes attrs = attrs_of({{"group", s.group},
                               {"strides", std::vector<int64_t>(axes, s.stride)},
                               {"pads", std::vector<int64_t>(2 * axes, s.pad)},
                               {"dilations", std::vector<int64_t>(axes, s.dilation)}});
  const int64_t depth = volume(std::span(s.w).subspan(1));
  check_byte_kernels(make_case("QuantizedConv", v, s.x, s.w, s.w[0], depth, std::move(attrs)));
}

void check_matmul(const shape& a, const shape& b, const variety& v) {
  check_byte_kernels(make_case("QuantizedMatMul", v, a, b, b.back(), a.back(), {}));
}

} // namespace

TEST_CASE("GPU QuantizedConv, all scalings", "[vulkan][quantised]") {
  for (const variety& v : varieties()) {
    check_conv({{2, 16, 5, 6}, {24, 16, 1, 1}}, v);
    check_conv({{1, 3, 9, 7}, {8, 3, 3, 3}, 1, 2, 1}, v);
    check_conv({{1, 8, 7, 6}, {8, 1, 3, 3}, 8, 1, 1}, v);
  }
}

TEST_CASE("GPU QuantizedConv, all sizes", "[vulkan][quantised]") {
  const std::vector<conv_sizes> sizes{
      {{1, 24, 6, 6}, {20, 24, 1, 1}},             // words of a row
      {{1, 13, 5, 5}, {7, 13, 1, 1}},              // bytes
      {{1, 16, 9, 9}, {8, 16, 1, 1}, 1, 2},        // pointwise but for the stride
      {{1, 32, 6, 5}, {40, 16, 3, 3}, 2, 1, 1},    // groups
      {{1, 12, 7, 8}, {6, 4, 3, 2}, 3, 1, 1},      // words of a group
      {{2, 48, 4, 4}, {33, 48, 3, 3}, 1, 1, 1},    // vectors, odd columns
      {{1, 4, 9}, {5, 4, 3}, 1, 2, 1},             // one axis
      {{1, 4, 4, 5, 3}, {3, 4, 2, 3, 2}, 1, 1, 1}, // three
      {{1, 4, 12, 12}, {4, 4, 3, 3}, 1, 1, 2, 2},  // dilated
      {{0, 4, 5, 5}, {4, 4, 3, 3}},                // no image
      {{1, 12, 9, 9}, {12, 1, 5, 5}, 12, 2, 2},    // depthwise
      {{2, 8, 11, 9}, {8, 1, 3, 3}, 8, 1, 2, 2},   // dilated
      {{1, 6, 5, 5}, {12, 1, 3, 3}, 6, 1, 1},      // two filters a channel
      {{1, 5, 6, 4}, {5, 1, 3, 3}, 5, 1, 1},       // channels that are not words
      {{1, 8, 3, 4, 5}, {8, 1, 2, 3, 3}, 8, 1, 1}, // three axes
      {{1, 64, 40, 40}, {64, 1, 3, 3}, 64, 1, 1},  // several pixels an invocation
      {{1, 64, 41, 39}, {64, 1, 3, 3}, 64, 2, 1},
  };
  size_t turn = 0;
  for (const conv_sizes& s : sizes)
    for (int k = 0; k < 2; ++k)
      check_conv(s, varieties()[turn++ % varieties().size()]);
}

TEST_CASE("GPU QuantizedMatMul, all scalings", "[vulkan][quantised]") {
  for (const variety& v : varieties()) {
    check_matmul({5, 48}, {48, 24}, v);
    check_matmul({3, 37}, {37, 10}, v);
  }
}

TEST_CASE("GPU QuantizedMatMul, all sizes", "[vulkan][quantised]") {
  const std::vector<std::pair<shape, shape>> sizes{
      {{1, 64}, {64, 33}},          {{70, 20}, {20, 64}},    {{2, 3, 33}, {33, 9}}, {{2, 3, 4, 16}, {2, 3, 16, 5}},
      {{2, 1, 5, 7}, {3, 7, 6}},    {{300, 129}, {129, 70}}, {{0, 8}, {8, 4}},      {{4, 0}, {0, 4}},
      {{3, 1, 4, 8}, {3, 1, 8, 8}}, {{1, 1000}, {1000, 12}},
  };
  size_t turn = 0;
  for (const auto& [a, b] : sizes)
    for (int k = 0; k < 3; ++k)
      check_matmul(a, b, varieties()[turn++ % varieties().size()]);
}

TEST_CASE("GPU quantised results are rounded to even and limited; NaN gives the low end", "[vulkan][quantised]") {
  // Sums by the identity are the elements themselves, less 100; a scale of 2 makes every other one a tie.
  const int64_t n = 256;
  std::vector<uint8_t> x(n);
  std::iota(x.begin(), x.end(), uint8_t{0});
  std::vector<int8_t> identity(n * n, 0);
  std::vector<float> bias(n, 0.f);
  for (int64_t i = 0; i < n; ++i)
    identity[static_cast<size_t>(i * n + i)] = 1;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::ranges::copy(std::array{std::numeric_limits<float>::quiet_NaN(), infinity, -infinity, 1e30f, -1e30f},
                    bias.begin() + 3);
  const auto single = [](auto v) { return tensor::of<decltype(v)>({}, std::vector{v}); };
  for (const tensor& zero : {single(uint8_t{3}), tensor()})
    check_gpu_kernels(
        {.op = "QuantizedMatMul",
         .inputs = {tensor::of<uint8_t>({1, n}, x), tensor::of<int8_t>({n, n}, identity), single(1.f), single(1.f),
                    single(uint8_t{100}), tensor(), tensor::of<float>({n}, bias), single(2.f), zero},
         .domain = "troupe",
         .constants = 2});
}

TEST_CASE("GPU quantised results at ties are the quotients'", "[vulkan][quantised]") {
  // 14 · (2 n + 1) / 256 over 7 / 64 is n + 1/2, but for a product with 64 / 7 as a float.
  tensor a(u8, {5, 1}), weights(i8, {1, 60}), image(u8, {1, 1, 5, 5}), filters(i8, {60, 1, 1, 1});
  std::fill_n(a.mutable_data<uint8_t>(), a.size(), uint8_t{14});
  std::fill_n(image.mutable_data<uint8_t>(), image.size(), uint8_t{14});
  for (int i = 0; i < 60; ++i)
    weights.mutable_data<int8_t>()[i] = filters.mutable_data<int8_t>()[i] = static_cast<int8_t>(2 * i + 1);
  const auto single = [](auto v) { return tensor::of<decltype(v)>({}, std::vector{v}); };
  kernel_case c{.op = "QuantizedMatMul",
                .inputs = {a, weights, single(1.f / 16), single(1.f / 16), tensor(), tensor(), tensor(),
                           single(7.f / 64), single(uint8_t{3})},
                .domain = "troupe",
                .constants = 1u << byte_inputs::b};
  for (const size_t i : byte_inputs::singles)
    c.constants |= 1u << i;
  check_gpu_kernels(c);
  c.op = "QuantizedConv";
  c.inputs[0] = image;
  c.inputs[1] = filters;
  check_gpu_kernels(c);
}

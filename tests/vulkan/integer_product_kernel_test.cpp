#include "support/catch.hpp"
#include "support/kernel_case.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

tensor bytes(dtype type, shape dims, uint64_t seed) {
  return random_integers(type, std::move(dims), seed, type == dtype::uint8 ? 0 : -128,
                         type == dtype::uint8 ? 256 : 128);
}

/// A power of two: products with it are exact on every device.
tensor scale(float value, shape dims = {}) {
  tensor t(dtype::float32, std::move(dims));
  for (int64_t i = 0; i < t.size(); ++i)
    t.mutable_data<float>()[i] = i % 2 ? value : value / 2;
  return t;
}

constexpr std::pair<dtype, dtype> type_pairs[] = {
    {dtype::uint8, dtype::uint8}, {dtype::uint8, dtype::int8}, {dtype::int8, dtype::uint8}, {dtype::int8, dtype::int8}};

} // namespace

TEST_CASE("GPU MatMulInteger and QLinearMatMul", "[vulkan]") {
  for (const auto& [left, right] : type_pairs)
    for (const auto& [a, b] : {std::pair<shape, shape>{{5, 33}, {33, 20}},
                               {{2, 1, 17, 8}, {3, 8, 19}},
                               {{2, 5, 40}, {40, 7}},
                               {{6}, {6, 4}},
                               {{3, 6}, {6}}}) {
      const tensor x = bytes(left, a, 1), w = bytes(right, b, 2);
      check_gpu_kernels({.op = "MatMulInteger", .inputs = {x, w}});
      check_gpu_kernels({.op = "MatMulInteger", .inputs = {x, w, bytes(left, {}, 3), bytes(right, {}, 4)}});
      check_gpu_kernels({.op = "QLinearMatMul",
                         .inputs = {x, scale(0.5f), bytes(left, {}, 3), w, scale(0.125f), bytes(right, {}, 4),
                                    scale(8.f), bytes(left, {}, 5)}});
    }
  check_gpu_kernels({.op = "MatMulInteger",
                     .inputs = {bytes(dtype::uint8, {5, 33}, 1), bytes(dtype::int8, {33, 20}, 2),
                                bytes(dtype::uint8, {5}, 3), bytes(dtype::int8, {20}, 4)}});
  check_gpu_kernels({.op = "QLinearMatMul",
                     .inputs = {bytes(dtype::uint8, {5, 33}, 1), scale(0.5f, {5}), bytes(dtype::uint8, {5}, 3),
                                bytes(dtype::int8, {33, 20}, 2), scale(0.125f, {20}), bytes(dtype::int8, {20}, 4),
                                scale(8.f), bytes(dtype::int8, {}, 5)}});
}

TEST_CASE("GPU ConvInteger and QLinearConv", "[vulkan]") {
  attributes strided, grouped;
  strided.set("strides", std::vector<int64_t>{2, 1});
  strided.set("pads", std::vector<int64_t>{1, 2, 0, 1});
  strided.set("dilations", std::vector<int64_t>{1, 2});
  grouped.set("group", int64_t{2});
  grouped.set("auto_pad", std::string("SAME_UPPER"));
  for (const auto& [left, right] : type_pairs)
    for (const auto& [x_dims, w_dims, attrs] :
         {std::tuple<shape, shape, attributes>{{2, 3, 7, 9}, {5, 3, 3, 3}, strided},
          {{1, 4, 6, 5}, {6, 2, 3, 2}, grouped},
          {{2, 3, 11}, {4, 3, 3}, {}},
          {{1, 2, 4, 5, 3}, {3, 2, 2, 2, 2}, {}}}) {
      const tensor x = bytes(left, x_dims, 1), w = bytes(right, w_dims, 2);
      const int64_t filters = w_dims[0];
      check_gpu_kernels({.op = "ConvInteger", .inputs = {x, w}, .attrs = attrs});
      check_gpu_kernels(
          {.op = "ConvInteger", .inputs = {x, w, bytes(left, {}, 3), bytes(right, {filters}, 4)}, .attrs = attrs});
      check_gpu_kernels(
          {.op = "QLinearConv",
           .inputs = {x, scale(0.5f), bytes(left, {}, 3), w, scale(0.125f, {filters}), bytes(right, {filters}, 4),
                      scale(16.f), bytes(right, {}, 5), random_integers(dtype::int32, {filters}, 6, -3000, 3000)},
           .attrs = attrs});
    }
}

TEST_CASE("GPU QLinearMatMul and QLinearConv multiply scales as the CPU does", "[vulkan]") {
  // With scales of 0.1 throughout, quotients a hair above a half, or at it in another order.
  tensor rows(dtype::uint8, {25, 1}), image(dtype::uint8, {1, 1, 5, 5});
  for (int i = 0; i < 25; ++i)
    rows.mutable_data<uint8_t>()[i] = image.mutable_data<uint8_t>()[i] = static_cast<uint8_t>(10 * i + 5);
  const auto single = [](auto v) { return tensor::of<decltype(v)>({}, std::vector{v}); };
  const tensor tenth = single(0.1f), none = single(uint8_t{0}), centred = single(int8_t{0});
  const tensor one = tensor::of<int8_t>({1, 1}, std::vector<int8_t>{1}),
               tap = tensor::of<int8_t>({1, 1, 1, 1}, std::vector<int8_t>{1});
  check_gpu_bits("QLinearMatMul",
                 {.op = "QLinearMatMul", .inputs = {rows, tenth, none, one, tenth, centred, tenth, none}});
  check_gpu_bits("QLinearConv",
                 {.op = "QLinearConv", .inputs = {image, tenth, none, tap, tenth, centred, tenth, none}});
}

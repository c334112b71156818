#include "support/catch.hpp"
#include "support/kernel_case.hpp"

#include <limits>

using namespace troupe;
using namespace troupe::test;

namespace {

using list = std::vector<int64_t>;

attributes window(const list& kernel, const list& strides = {}, const list& pads = {}, const list& dilations = {}) {
  attributes a;
  a.set("kernel_shape", kernel);
  if (!strides.empty())
    a.set("strides", strides);
  if (!pads.empty())
    a.set("pads", pads);
  if (!dilations.empty())
    a.set("dilations", dilations);
  return a;
}

attributes with(attributes a, const std::string& name, int64_t value) {
  a.set(name, value);
  return a;
}

struct window_case {
  shape dims;
  attributes attrs;
};

std::vector<window_case> window_cases() {
  const attributes padded = window({3, 3}, {2, 2}, {1, 1, 1, 1});
  attributes same = window({2, 2}, {2, 2});
  same.set("auto_pad", std::string("SAME_UPPER"));
  return {
      {{2, 8, 13, 15}, padded},
      {{2, 8, 14, 14}, with(padded, "ceil_mode", 1)},
      {{1, 5, 13, 15}, padded},
      {{1, 3, 9, 7}, window({5, 2}, {1, 3}, {2, 0, 1, 1}, {2, 1})},
      {{1, 4, 6, 7}, same},
      {{2, 3, 17}, window({4}, {3}, {1, 2})},
      {{1, 4, 5, 6, 7}, window({3, 2, 3}, {2, 1, 2}, {1, 0, 1, 0, 1, 1})},
      {{1, 8, 7, 7}, window({7, 7})},
      {{0, 8, 7, 7}, window({3, 3})},
  };
}

} // namespace

TEST_CASE("GPU pooling over windows", "[vulkan]") {
  for (const auto& [dims, attrs] : window_cases())
    for (bool half : {false, true}) {
      const std::vector<tensor> x{random_floats(dims, 1, -2, 2)};
      check_gpu_kernels({.op = "MaxPool", .inputs = x, .attrs = attrs}, half);
      check_gpu_kernels({.op = "MaxPool", .inputs = x, .attrs = attrs, .outputs = 2}, half);
      check_gpu_kernels({.op = "AveragePool", .inputs = x, .attrs = attrs, .atol = 1e-4}, half);
      check_gpu_kernels({.op = "AveragePool", .inputs = x, .attrs = with(attrs, "count_include_pad", 1), .atol = 1e-4},
                        half);
    }
}

TEST_CASE("GPU p-norm pooling", "[vulkan]") {
  for (int64_t p : {1, 2, 3})
    for (const auto& [dims, attrs] : window_cases())
      check_gpu_kernels({.op = "LpPool", .inputs = {random_floats(dims, 2)}, .attrs = with(attrs, "p", p)});
}

TEST_CASE("GPU maximum pooling of bytes, and its indices along columns", "[vulkan]") {
  for (dtype type : {dtype::int8, dtype::uint8})
    for (const auto& [dims, attrs] : window_cases())
      check_gpu_kernels({.op = "MaxPool",
                         .inputs = {random_integers(type, dims, 3, type == dtype::int8 ? -128 : 0, 127)},
                         .attrs = with(attrs, "storage_order", 1),
                         .outputs = 2});
}

TEST_CASE("GPU maxima keep NaN and infinities", "[vulkan]") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float values[] = {1, std::numeric_limits<float>::quiet_NaN(), 2, -infinity, -infinity, 3, infinity, 0};
  const std::vector<tensor> x{tensor::of<float>({1, 1, 8}, values)};
  check_gpu_kernels({.op = "MaxPool", .inputs = x, .attrs = window({2}, {2}), .outputs = 2});
  check_gpu_kernels({.op = "MaxPool", .inputs = x, .attrs = window({3})});
  check_gpu_kernels({.op = "GlobalMaxPool", .inputs = x});
}

TEST_CASE("GPU pooling of whole planes", "[vulkan]") {
  for (const shape& dims :
       {shape{1, 2048, 7, 7}, {2, 3, 13, 11}, {3, 36, 5, 6}, {1, 7, 1000}, {2, 4, 1, 1}, {1, 8, 2, 3, 4}})
    for (bool half : {false, true}) {
      const std::vector<tensor> x{random_floats(dims, 4)};
      check_gpu_kernels({.op = "GlobalAveragePool", .inputs = x, .atol = 1e-4}, half);
      check_gpu_kernels({.op = "GlobalMaxPool", .inputs = x}, half);
      check_gpu_kernels({.op = "GlobalLpPool", .inputs = x}, half);
    }
}

TEST_CASE("GPU means of large planes are as exact as floats", "[vulkan]") {
  check_gpu_kernels({.op = "GlobalAveragePool",
                     .inputs = {random_floats({1, 2, 700, 600}, 1, 0, 1)},
                     .rtol = 2e-6,
                     .atol = 0,
                     .in_double = true});
}

#include "support/catch.hpp"
#include "support/kernel_case.hpp"

#include <limits>

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity(), nan_value = std::numeric_limits<float>::quiet_NaN();

attributes with_axis(int64_t axis) {
  attributes attrs;
  attrs.set("axis", axis);
  return attrs;
}

/// Rows that hold infinities, NaN, equal largest elements, and plain numbers.
tensor edge_rows() {
  const float v[] = {1, 2, infinity,  0, -1, -infinity, -infinity, -infinity, -infinity, -infinity, nan_value, 3, 1, 5,
                     2, 4, nan_value, 9, 9,  0,         -infinity, 1,         -infinity, 1,         0.5f};
  return tensor::of<float>({5, 5}, v);
}

void check_softmax(const char* op, const shape& dims, int64_t axis, bool half) {
  check_gpu_kernels({.op = op,
                     .inputs = {random_floats(dims, 1, -4, 4)},
                     .attrs = dims.empty() ? attributes{} : with_axis(axis),
                     .rtol = 2e-5,
                     .atol = half ? 1e-6 : 1e-7},
                    half);
}

} // namespace

TEST_CASE("GPU softmax takes rows and columns", "[vulkan]") {
  for (const char* op : {"Softmax", "LogSoftmax", "Hardmax"}) {
    check_softmax(op, {2, 3, 64}, 2, op[0] == 'S');
    check_softmax(op, {2, 3, 5}, 1, false);
  }
  check_softmax("Softmax", {2, 770}, 1, false);
  check_softmax("Softmax", {0, 5}, 1, false);
}

TEST_CASE("GPU softmax takes any axis and length", "[vulkan][slow]") {
  const std::pair<shape, int64_t> cases[] = {{{3, 5}, -1},    {{3, 5}, 0},       {{2, 9, 5, 2}, 1}, {{7, 128}, -1},
                                             {{2, 770}, 1},   {{2, 21, 300}, 1}, {{3, 1}, 1},       {{9000, 16, 2}, 1},
                                             {{3, 9001}, 1},  {{1, 40000}, 1},   {{}, -1},          {{2, 400, 3}, 1},
                                             {{4100, 4}, -1}, {{2100, 36}, -1}};
  for (const auto& [dims, axis] : cases)
    for (const char* op : {"Softmax", "LogSoftmax", "Hardmax"})
      for (bool half : {false, true})
        check_softmax(op, dims, axis, half);
  for (int64_t axis : {0, 1, 3}) // the matrix form
    check_gpu_kernels(
        {.op = "Softmax", .inputs = {random_floats({3, 4, 6}, 2, -4, 4)}, .attrs = with_axis(axis), .opset = 11});
}

TEST_CASE("GPU softmax treats NaN and infinities as the reference does", "[vulkan]") {
  for (const char* op : {"Softmax", "LogSoftmax", "Hardmax"})
    for (int64_t axis : {0, 1})
      check_gpu_kernels({.op = op, .inputs = {edge_rows()}, .attrs = with_axis(axis)});
}

namespace {

struct norm_case {
  shape dims, scale, bias;
  int64_t axis = -1;
};

void check_layer_norms(const norm_case& n, bool half) {
  const tensor x = random_floats(n.dims, 1, 3, 5), scale = random_floats(n.scale, 2), bias = random_floats(n.bias, 3);
  const kernel_case layer{.op = "LayerNormalization",
                          .inputs = {x, scale, bias},
                          .attrs = with_axis(n.axis),
                          .outputs = 3,
                          .atol = half ? 1e-3 : 2e-5};
  check_gpu_kernels(layer, half);
  const kernel_case rms{.op = "RMSNormalization", .inputs = {x, scale}, .attrs = with_axis(n.axis), .opset = 23};
  check_gpu_kernels(rms, half);
}

} // namespace

TEST_CASE("GPU layer norms", "[vulkan]") {
  check_layer_norms({{4, 768}, {768}, {768}}, true);
  check_layer_norms({{2, 3, 20}, {3, 20}, {20}, 1}, false);
  check_gpu_kernels({.op = "LayerNormalization", .inputs = {random_floats({3, 12}, 4), random_floats({12}, 5)}});
}

TEST_CASE("GPU layer norms of all shapes", "[vulkan][slow]") {
  const norm_case cases[] = {
      {{4, 768}, {768}, {768}},     {{2, 3, 20}, {20}, {20}},       {{2, 3, 21}, {21}, {1}},
      {{2, 9100}, {9100}, {9100}},  {{3, 5, 7}, {3, 1, 7}, {5, 1}}, {{3, 7, 4}, {7, 4}, {1, 7, 4}, 1},
      {{2, 1}, {1}, {1}},           {{5000, 32}, {32}, {32}},       {{0, 8}, {8}, {8}},
      {{2, 3, 4}, {}, {2, 1, 1}, 0}};
  for (const norm_case& n : cases)
    for (bool half : {false, true})
      check_layer_norms(n, half);
}

#include "support/catch.hpp"
#include "support/kernel_case.hpp"

#include <limits>

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity(), nan_value = std::numeric_limits<float>::quiet_NaN();

tensor one(float value, shape dims = {}) {
  return tensor::of<float>(std::move(dims), std::span<const float>(&value, 1));
}

tensor edge_values() {
  const float values[] = {0.f,  -0.f,  1.f,  -1.f,  0.5f,  -0.5f,  1e-5f,    -1e-5f,    0.7f,      1.5f, -2.5f, 3.f,
                          10.f, -20.f, 88.f, -87.f, 100.f, -110.f, infinity, -infinity, nan_value, 2.5f, 3e4f};
  return tensor::of<float>({static_cast<int64_t>(std::size(values))}, values);
}

} // namespace

TEST_CASE("GPU unary functions are accurate and keep NaN, infinities and signed zero", "[vulkan]") {
  for (const char* op :
       {"Abs", "Neg",  "Sign", "Floor", "Ceil", "Round", "Sqrt", "Reciprocal", "Exp",   "Log",   "Sin", "Cos",
        "Tan", "Asin", "Acos", "Atan",  "Sinh", "Cosh",  "Tanh", "Asinh",      "Acosh", "Atanh", "Erf"}) {
    check_gpu_kernels({.op = op, .inputs = {edge_values()}, .rtol = 2e-5, .atol = 1e-7});
    check_gpu_kernels({.op = op, .inputs = {random_floats({3, 701}, 1, 0.01f, 0.99f)}, .rtol = 1e-5, .atol = 1e-7},
                      true);
  }
}

TEST_CASE("GPU Clip without a bound limits to the type's numbers", "[vulkan]") {
  for (const bool half : {false, true}) {
    check_gpu_kernels({.op = "Clip", .inputs = {edge_values()}, .rtol = 0, .atol = 0}, half);
    check_gpu_kernels({.op = "Clip", .inputs = {edge_values(), one(0.5f, {})}, .rtol = 0, .atol = 0}, half);
    check_gpu_kernels({.op = "Clip", .inputs = {edge_values(), tensor(), one(0.5f, {})}, .rtol = 0, .atol = 0}, half);
  }
  const tensor doubles = to_type(edge_values(), dtype::float64);
  check_gpu_kernels({.op = "Clip", .inputs = {doubles}, .rtol = 0, .atol = 0});
  check_gpu_kernels({.op = "Clip", .inputs = {doubles, to_type(one(0.5f, {}), dtype::float64)}, .rtol = 0, .atol = 0});
}

TEST_CASE("GPU binary functions broadcast", "[vulkan]") {
  for (const char* op : {"Add", "Sub", "Mul", "Div"})
    for (const auto& [a, b] : {std::pair<shape, shape>{{2, 3, 5}, {2, 3, 5}},
                               {{2, 3, 5}, {5}},
                               {{2, 3, 5}, {3, 1}},
                               {{2, 1, 5, 7}, {3, 1, 7}},
                               {{1}, {4, 1031}},
                               {{2, 0, 5}, {5}},
                               {{}, {}}})
      for (bool half : {false, true})
        check_gpu_kernels({.op = op, .inputs = {random_floats(a, 1), random_floats(b, 2, 0.5f, 2.f)}}, half);
}

TEST_CASE("GPU binary functions of a constant number", "[vulkan]") {
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Pow", "Min", "Max"})
    for (const shape& number : {shape{}, {1}, {1, 1, 1, 1}})
      for (const bool half : {false, true}) {
        const tensor x = random_floats({3, 5, 7}, 1, 0.5f, 2.f);
        check_gpu_kernels({.op = op, .inputs = {x, one(-1.5f, number)}, .constants = 2}, half);
        check_gpu_kernels({.op = op, .inputs = {one(0.75f, number), x}, .constants = 1}, half);
        check_gpu_kernels({.op = op, .inputs = {random_floats({1}, 2, 0.5f, 2.f), one(2, number)}, .constants = 2},
                          half);
      }
  check_gpu_kernels({.op = "Mul", .inputs = {edge_values(), one(nan_value)}, .constants = 2});
  check_gpu_kernels({.op = "Sub", .inputs = {one(infinity), edge_values()}, .constants = 1});
}

TEST_CASE("GPU activations are accurate and keep NaN and infinities", "[vulkan]") {
  const auto with = [](std::initializer_list<std::pair<const char*, float>> values) {
    attributes attrs;
    for (const auto& [name, value] : values)
      attrs.set(name, value);
    return attrs;
  };
  attributes tanh_gelu;
  tanh_gelu.set("approximate", std::string("tanh"));
  const std::vector<std::pair<const char*, attributes>> calls{{"Relu", {}},
                                                              {"Sigmoid", {}},
                                                              {"LeakyRelu", {}},
                                                              {"LeakyRelu", with({{"alpha", 0.3f}})},
                                                              {"Elu", {}},
                                                              {"Elu", with({{"alpha", 2.f}})},
                                                              {"Selu", {}},
                                                              {"Selu", with({{"alpha", 2.f}, {"gamma", 3.f}})},
                                                              {"Celu", {}},
                                                              {"Celu", with({{"alpha", 0.5f}})},
                                                              {"ThresholdedRelu", with({{"alpha", 0.6f}})},
                                                              {"HardSigmoid", {}},
                                                              {"HardSigmoid", with({{"alpha", 0.5f}, {"beta", 0.1f}})},
                                                              {"HardSwish", {}},
                                                              {"Softplus", {}},
                                                              {"Softsign", {}},
                                                              {"Mish", {}},
                                                              {"Swish", with({{"alpha", 1.5f}})},
                                                              {"Gelu", {}},
                                                              {"Gelu", tanh_gelu},
                                                              {"Shrink", with({{"lambd", 0.6f}, {"bias", 0.1f}})}};
  for (const auto& [op, attrs] : calls) {
    const int64_t opset = std::string(op) == "Swish" ? 24 : 21;
    check_gpu_kernels(
        {.op = op, .inputs = {edge_values()}, .attrs = attrs, .opset = opset, .rtol = 2e-5, .atol = 2e-6});
    check_gpu_kernels({.op = op, .inputs = {random_floats({3, 701}, 1, -4, 4)}, .attrs = attrs, .opset = opset}, true);
  }
}

TEST_CASE("GPU Clip takes absent and present bounds", "[vulkan]") {
  const tensor low = one(-0.5f, {}), high = one(0.6f, {1});
  for (const auto& inputs : {std::vector<tensor>{edge_values()},
                             {edge_values(), low},
                             {edge_values(), {}, high},
                             {edge_values(), low, high},
                             {edge_values(), high, low}})
    for (bool half : {false, true})
      check_gpu_kernels({.op = "Clip", .inputs = inputs}, half);
  attributes attrs;
  attrs.set("min", -1.f);
  check_gpu_kernels({.op = "Clip", .inputs = {edge_values()}, .attrs = attrs, .opset = 6});
}

TEST_CASE("GPU PRelu, Pow and Mod broadcast their second operand", "[vulkan]") {
  const tensor x = random_floats({2, 3, 4, 5}, 1, -3, 3);
  for (bool half : {false, true}) {
    check_gpu_kernels({.op = "PRelu", .inputs = {x, random_floats({3, 1, 1}, 2)}}, half);
    check_gpu_kernels({.op = "PRelu", .inputs = {edge_values(), random_floats({1}, 2)}}, half);
    check_gpu_kernels({.op = "Pow", .inputs = {random_floats({4, 5}, 1, 0.1f, 3), random_floats({5}, 2, -2, 3)}}, half);
    check_gpu_kernels({.op = "Mod", .inputs = {x, random_floats({5}, 2, 0.25f, 2)}}, half);
  }
  for (float exponent : {2.f, 3.f, -1.f, 0.5f, 1.7f})
    check_gpu_kernels({.op = "Pow", .inputs = {edge_values(), one(exponent, {})}, .rtol = 2e-4});
  check_gpu_kernels({.op = "Pow", .inputs = {x, random_integers(dtype::int64, {}, 1, 2, 3)}, .constants = 2});
}

TEST_CASE("GPU PRelu of old models takes a slope a channel", "[vulkan]") {
  for (const shape& slope : {shape{3}, {1}, {2, 3, 4, 5}})
    check_gpu_kernels({.op = "PRelu", .inputs = {random_floats({2, 3, 4, 5}, 1), random_floats(slope, 2)}, .opset = 6});
}

TEST_CASE("GPU Dropout hands on and makes a mask, but drops nothing", "[vulkan]") {
  const tensor x = random_floats({3, 70}, 1);
  const auto boolean = [](bool value) { return tensor::of<bool>({}, std::initializer_list<bool>{value}); };
  check_gpu_kernels({.op = "Dropout", .inputs = {x}, .opset = 13, .outputs = 2}, true);
  check_gpu_kernels({.op = "Dropout", .inputs = {x}, .opset = 7, .outputs = 2});
  check_gpu_kernels({.op = "Dropout", .inputs = {x, one(0.5f), boolean(false)}, .opset = 13, .outputs = 2});
  check_gpu_kernels({.op = "Dropout", .inputs = {x, one(0.f), boolean(true)}, .opset = 13, .outputs = 2});
  kernel_case drops{.op = "Dropout", .inputs = {x, one(0.5f), boolean(true)}, .opset = 13, .outputs = 2};
  drops.attrs.set("seed", int64_t{1});
  CHECK_FALSE(has_gpu_kernel(drops));
}

TEST_CASE("GPU float remainders are exact for any quotient", "[vulkan]") {
  std::vector<float> a, b;
  for (float x : {0.f, 1.f, -7.3f, 0.3f, 1e-3f, 123456.7f, -3e30f, 2.5e8f, infinity, nan_value})
    for (float y : {0.f, 1.f, -0.1f, 0.1f, 3.f, 7e-8f, -1e30f, 1e-20f, infinity, -infinity, nan_value}) {
      a.push_back(x);
      b.push_back(y);
    }
  const shape dims{static_cast<int64_t>(a.size())};
  for (int64_t c_remainder : {0, 1}) {
    attributes attrs;
    attrs.set("fmod", c_remainder);
    check_gpu_kernels({.op = "Mod",
                       .inputs = {tensor::of<float>(dims, a), tensor::of<float>(dims, b)},
                       .attrs = attrs,
                       .rtol = 0,
                       .atol = 0});
  }
}

TEST_CASE("GPU Sum, Mean, Max and Min take up to eight operands", "[vulkan]") {
  for (const char* op : {"Sum", "Mean", "Max", "Min"})
    for (size_t count : {1, 2, 3, 8}) {
      std::vector<tensor> inputs;
      for (size_t i = 0; i < count; ++i)
        inputs.push_back(random_floats(i % 3 == 1 ? shape{3, 1} : i % 3 == 2 ? shape{5} : shape{2, 3, 5}, i, 0, 1));
      check_gpu_kernels({.op = op, .inputs = inputs});
      check_gpu_kernels({.op = op, .inputs = inputs, .rtol = 4e-3}, true);
    }
  const tensor edges = edge_values();
  for (const char* op : {"Max", "Min"})
    check_gpu_kernels({.op = op, .inputs = {edges, one(nan_value, {1}), edges}});
}

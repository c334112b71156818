#include "support/catch.hpp"
#include "support/kernel_case.hpp"

#include <limits>

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity(), nan_value = std::numeric_limits<float>::quiet_NaN();

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
    const bool wave = std::string(op) == "Sin" || std::string(op) == "Cos" || std::string(op) == "Tan";
    check_gpu_kernels({.op = op, .inputs = {edge_values()}, .rtol = 2e-5, .atol = wave ? 2e-4 : 1e-7});
    check_gpu_kernels({.op = op, .inputs = {random_floats({3, 701}, 1, 0.01f, 0.99f)}, .rtol = 1e-5, .atol = 1e-7},
                      true);
  }
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

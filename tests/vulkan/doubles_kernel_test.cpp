#include "support/catch.hpp"
#include "support/kernel_case.hpp"

#include <limits>

using namespace troupe;
using namespace troupe::test;

namespace {

tensor doubles(shape dims, uint64_t seed, double low = -1, double high = 1) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> value(low, high);
  tensor t(dtype::float64, std::move(dims));
  for (int64_t i = 0; i < t.size(); ++i)
    t.mutable_data<double>()[i] = value(random);
  return t;
}

tensor edges() {
  constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const double values[] = {0.,    -0.,   1.,     -1.,  0.5, -0.5,  1.5,    2.5,      -2.5,      1e-12, 700.,
                           -740., 1e300, -1e300, 1e17, 3.,  -87.5, 4.7e15, infinity, -infinity, nan};
  return tensor::of<double>({static_cast<int64_t>(std::size(values))}, values);
}

} // namespace

TEST_CASE("GPU functions of doubles have a double's digits", "[vulkan]") {
  for (const char* op : {"Abs", "Neg", "Sign", "Floor", "Ceil", "Round", "Sqrt", "Reciprocal", "Exp", "Log", "Relu",
                         "Sigmoid", "LeakyRelu", "Softsign", "ThresholdedRelu"}) {
    check_gpu_kernels({.op = op, .inputs = {edges()}, .rtol = 1e-12, .atol = 1e-300});
    check_gpu_kernels({.op = op, .inputs = {doubles({3, 701}, 1, 0.01, 30)}, .rtol = 1e-12, .atol = 1e-300});
  }
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Min", "Max", "PRelu"})
    for (const auto& [a, b] :
         {std::pair<shape, shape>{{2, 3, 5}, {2, 3, 5}}, {{2, 3, 5}, {3, 1}}, {{4, 1031}, {1}}, {{2, 0}, {1}}})
      check_gpu_kernels({.op = op, .inputs = {doubles(a, 1), doubles(b, 2)}, .rtol = 1e-14, .atol = 0});
  check_gpu_kernels({.op = "Max", .inputs = {edges(), doubles({1}, 1), doubles({2, 1}, 2)}});
  const tensor x = doubles({2, 33}, 1, -9, 9), low = doubles({}, 2, -4, -3), high = doubles({}, 3, 4, 5);
  for (const auto& inputs : {std::vector<tensor>{x}, {x, low}, {x, low, high}, {x, high, low}})
    check_gpu_kernels({.op = "Clip", .inputs = inputs, .rtol = 0, .atol = 0});
}

TEST_CASE("GPU comparisons of doubles", "[vulkan]") {
  for (const char* op : {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"})
    check_gpu_kernels({.op = op, .inputs = {edges(), doubles({1}, 1)}});
  for (const char* op : {"IsNaN", "IsInf"})
    check_gpu_kernels({.op = op, .inputs = {edges()}});
}

TEST_CASE("GPU reductions of doubles", "[vulkan]") {
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
                         "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"})
    for (const std::vector<int64_t>& axes : {std::vector<int64_t>{1}, {0, 2}, {-1}}) {
      const tensor which = tensor::of<int64_t>({static_cast<int64_t>(axes.size())}, axes);
      check_gpu_kernels({.op = op, .inputs = {doubles({3, 70, 5}, 1, 0.9, 1.1), which}, .rtol = 1e-12, .atol = 1e-12});
      check_gpu_kernels({.op = op, .inputs = {doubles({2, 0, 3}, 1), which}, .rtol = 1e-12, .atol = 1e-12});
    }
  const tensor last = tensor::of<int64_t>({1}, std::vector<int64_t>{0});
  for (const char* op : {"ReduceMax", "ReduceMin", "ReduceSum", "ReduceLogSumExp"})
    check_gpu_kernels({.op = op, .inputs = {edges(), last}});
}

// Every scalar function over all of float32, on the reference, the CPU's vector loops and GPU 0, against float64. More
// points by environment variable TROUPE_SWEEP (support/scalar_sweep.hpp).
#include "cpu/fast_functions.hpp"
#include "ops/composed/fused_elementwise.hpp"
#include "ops/evaluate.hpp"
#include "ops/registry.hpp"
#include "support/catch.hpp"
#include "support/kernel_case.hpp"
#include "support/scalar_sweep.hpp"

#include <algorithm>

using namespace troupe;
using namespace troupe::test;

namespace {

tensor vector_of(const std::vector<float>& values) {
  return tensor::of<float>({std::ssize(values)}, values);
}

/// A chain of one step, with the operator's own numbers.
attributes step_of(const scalar_function& f) {
  scalar_call call{f.code, f.values(), {}};
  for (const real_attribute& a : f.attribute_operands)
    if (!a.name.empty())
      call.numbers.push_back(a.otherwise);
  return to_attributes(single_step(call));
}

tensor chain(const scalar_function& f, const std::vector<tensor>& inputs) {
  return evaluate(*find_op("troupe", "Elementwise", 1), step_of(f), inputs).at(0);
}

std::vector<double> exact_results(const scalar_function& f, std::vector<tensor> inputs) {
  for (tensor& t : inputs)
    t = to_type(t, dtype::float64);
  return to_double(chain(f, inputs).view());
}

/// A subnormal number may be 0 to a GPU: then these give something else.
bool jumps_at_zero(scalar_code code) {
  return code == scalar_code::floor || code == scalar_code::ceil || code == scalar_code::sign;
}

/// Points at which the results are neither beside the largest number, where a last digit makes them infinite, nor
/// beside a jump.
std::vector<float> points_of(const scalar_function& f) {
  constexpr double largest = std::numeric_limits<float>::max();
  std::vector<float> all = sweep_points(sweep_size());
  const auto exact = exact_results(f, {vector_of(all)});
  std::vector<float> points;
  for (size_t i = 0; i < all.size(); ++i)
    if (!(std::abs(std::abs(exact[i]) / largest - 1) < 4e-6) &&
        !(jumps_at_zero(f.code) && std::abs(all[i]) < 0x1p-126f))
      points.push_back(all[i]);
  return points;
}

std::vector<float> fast_results(const scalar_function& f, const std::vector<float>& x) {
  std::vector<float> numbers[2];
  for (size_t i = 0; i < 2; ++i)
    numbers[i].assign(x.size(), f.attribute_operands[i].otherwise);
  std::vector<float> y(x.size());
  fast::run_step(f.code, x.data(), numbers[0].data(), numbers[1].data(), y.data(), std::ssize(x));
  return y;
}

double worst_error(std::span<const float> got, const std::vector<double>& exact, const std::vector<float>& x,
                   double beside_zeros) {
  sweep_error worst(beside_zeros);
  for (size_t i = 0; i < x.size(); ++i)
    worst.add(got[i], exact[i], x[i]);
  UNSCOPED_INFO(worst.text());
  return worst.units();
}

} // namespace

TEST_CASE("scalar functions swept over all floats are within 2e-6 of float64 on every device", "[cpu][vulkan]") {
  for (size_t code = 0; code < scalar_code_count; ++code) {
    const scalar_function& f = scalar_functions[code];
    if (!(f.types & set_of(dtype::float32)) || f.values() != 1)
      continue;
    INFO("function " << code << ", " << f.name);
    const std::vector<float> x = points_of(f);
    const auto exact = exact_results(f, {vector_of(x)});
    // Their zeros, at −2.5 and −3, are where a product and a number cancel: the last digits of the product are left.
    const bool cancels = f.code == scalar_code::hard_sigmoid || f.code == scalar_code::hard_swish;
    const double beside_zeros = cancels ? 1e-7 : 0;
    CHECK(worst_error(chain(f, {vector_of(x)}).values<float>(), exact, x, beside_zeros) <= 1);
    CHECK(worst_error(fast_results(f, x), exact, x, beside_zeros) <= 1);
    check_gpu_kernels({.op = "Elementwise",
                       .inputs = {vector_of(x)},
                       .attrs = step_of(f),
                       .domain = "troupe",
                       .rtol = 2e-6,
                       .atol = beside_zeros + 0x1p-119,
                       .in_double = true});
  }
}

TEST_CASE("powers swept over all floats are within 2e-6 of float64 on every device", "[cpu][vulkan]") {
  const scalar_function& f = function_of(scalar_code::pow);
  constexpr float exponents[] = {0.1f, -0.3f, 0.5f, 2, 3, -2, 17, -64, 1.5f, -7.7f, 100.5f, 1e-3f};
  std::vector<float> x = sweep_points(sweep_size() / 8);
  std::erase_if(x, [](float v) { return std::abs(v) < 0x1p-126f && v != 0; }); // which GPUs may take for 0
  for (const float b : exponents) {
    INFO("exponent " << b);
    const std::vector<tensor> inputs{vector_of(x), vector_of({b})};
    CHECK(worst_error(chain(f, inputs).values<float>(), exact_results(f, inputs), x, 0) <= 1);
    check_gpu_kernels({.op = "Elementwise",
                       .inputs = inputs,
                       .attrs = step_of(f),
                       .domain = "troupe",
                       .rtol = 2e-6,
                       .atol = 0x1p-119,
                       .in_double = true});
  }
}

// Walks the table of scalar functions: the reference kernel, the CPU's vector loop and the GPU's kernel give the same.
#include "cpu/kernel_check.hpp"
#include "ops/composed/fused_elementwise.hpp"
#include "ops/evaluate.hpp"
#include "ops/registry.hpp"
#include "support/catch.hpp"
#include "support/graph_builder.hpp"
#include "support/kernel_case.hpp"

#include <cmath>

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity(), nan_value = std::numeric_limits<float>::quiet_NaN();

/// Zeros, NaN, infinities, numbers near 0, and large ones.
constexpr float edges[] = {0.f,    -0.f,  1.f,  -1.f,     0.5f,      -0.5f,     1e-5f, -1e-5f, 0.7f,
                           1.5f,   -2.5f, 3.f,  10.f,     -20.f,     31.f,      88.f,  -87.f,  100.f,
                           -110.f, 2.5f,  3e4f, infinity, -infinity, nan_value, 3e38f, -3e38f};
constexpr int64_t edge_count = std::size(edges);

/// The function of every edge, or of every pair of them.
std::vector<tensor> operands_of(const scalar_function& f) {
  const std::span<const float> values(edges);
  if (f.values() == 1)
    return {tensor::of<float>({edge_count}, values)};
  return {tensor::of<float>({edge_count, 1}, values), tensor::of<float>({edge_count}, values)};
}

/// A chain of one step, with numbers that are not the defaults, for those are often 0 or 1.
attributes chain_of(const scalar_function& f) {
  const bool is_range = f.code == scalar_code::clip;
  scalar_call call{f.code, f.values(), is_range ? std::vector{-0.6f, 0.75f} : std::vector{0.7f, 0.3f}};
  call.numbers.resize(static_cast<size_t>(f.operands - f.values()));
  return to_attributes(single_step(call));
}

} // namespace

TEST_CASE("every scalar function is one function in reference, CPU and GPU kernels", "[cpu][vulkan]") {
  for (size_t code = 0; code < scalar_code_count; ++code) {
    const scalar_function& f = scalar_functions[code];
    if (!(f.types & set_of(dtype::float32)))
      continue;
    INFO("function " << code << ", " << f.name);
    const std::vector<tensor> inputs = operands_of(f);
    testing::kernel_check cpu("troupe", "Elementwise", chain_of(f));
    for (const tensor& t : inputs)
      cpu.input(t);
    CHECK(cpu.worst("elementwise", 1e-5, 2e-6) < 1);
    check_gpu_kernels(
        {.op = "Elementwise", .inputs = inputs, .attrs = chain_of(f), .domain = "troupe", .rtol = 2e-5, .atol = 2e-6});
    std::vector<tensor> small;
    for (const tensor& t : inputs)
      small.push_back(random_floats(t.dims(), code, -4, 4));
    check_gpu_kernels({.op = "Elementwise", .inputs = small, .attrs = chain_of(f), .domain = "troupe"}, true);
  }
}

TEST_CASE("QuickGelu is x / (1 + e^(-alpha x)) on all devices", "[ops][cpu][vulkan]") {
  const op_def* def = find_op("com.microsoft", "QuickGelu", 1);
  REQUIRE(def);
  const tensor x = random_floats({3, 701}, 1, -6, 6);
  const tensor y = evaluate(*def, {}, std::vector{x}).at(0);
  for (size_t i = 0; i < 3 * 701; ++i) {
    const double v = x.values<float>()[i];
    CHECK(std::abs(y.values<float>()[i] - v / (1 + std::exp(-1.702 * v))) <= 1e-6 * (1 + std::abs(v)));
  }
  CHECK(testing::kernel_check("com.microsoft", "QuickGelu").input(x).worst("elementwise", 1e-5, 2e-6) < 1);
  check_gpu_kernels(
      {.op = "QuickGelu", .inputs = {x}, .attrs = attrs_of({{"alpha", 1.2f}}), .domain = "com.microsoft"});
}

#include "support/catch.hpp"
#include "support/kernel_case.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

tensor numbers(dtype type, const shape& dims, uint64_t seed) {
  return types::floats & set_of(type) ? to_type(random_floats(dims, seed), type)
                                      : random_integers(type, dims, seed, 0, 9);
}

void check_einsum(const std::string& equation, dtype type, const std::vector<shape>& operands) {
  kernel_case c{.op = "Einsum"};
  for (size_t i = 0; i < operands.size(); ++i)
    c.inputs.push_back(numbers(type, operands[i], i + 1));
  c.attrs.set("equation", equation);
  check_gpu_kernels(c);
}

} // namespace

TEST_CASE("GPU Einsum sums products over any axes", "[vulkan]") {
  for (dtype type : {dtype::float32, dtype::float64, dtype::int32, dtype::int64, dtype::uint8}) {
    check_einsum("bij,bjk->bik", type, {{2, 3, 5}, {2, 5, 7}});
    check_einsum("...ii->...i", type, {{3, 4, 4}});
    check_einsum("i,i", type, {{70}, {70}});
    check_einsum("ij->i", type, {{3, 0}});
    check_einsum("a...c,...bc->...ab", type, {{3, 2, 5}, {2, 4, 5}});
    check_einsum("ij->ji", type, {{3, 9}});
  }
}

TEST_CASE("GPU Det of matrices", "[vulkan]") {
  for (dtype type : {dtype::float32, dtype::float64}) {
    for (const shape& dims : {shape{3, 2, 5, 5}, {2, 1, 1}, {70, 70}, {4, 0, 0}})
      check_gpu_kernels({.op = "Det", .inputs = {numbers(type, dims, 1)}, .atol = 1e-6});
    check_gpu_kernels({.op = "Det", .inputs = {to_type(random_floats({2, 3, 3}, 1, 0, 0), type)}});
    check_gpu_kernels({.op = "Det", .inputs = {numbers(type, {70'000, 1, 1}, 1)}}); // more groups than a line of x has
  }
}

TEST_CASE("GPU MatMul of doubles and integers", "[vulkan]") {
  for (dtype type : {dtype::float64, dtype::int32, dtype::int64, dtype::uint32, dtype::uint64})
    for (const auto& [a, b] : {std::pair<shape, shape>{{3, 5}, {5, 7}},
                               {{2, 1, 3, 5}, {4, 5, 7}},
                               {{5}, {5}},
                               {{5}, {2, 5, 3}},
                               {{2, 3, 5}, {5}},
                               {{3, 0}, {0, 2}}})
      check_gpu_kernels({.op = "MatMul", .inputs = {numbers(type, a, 1), numbers(type, b, 2)}});
}

#include "support/catch.hpp"
#include "support/kernel_case.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

kernel_case loss(const shape& dims, dtype target, const std::string& reduction, bool weighted) {
  shape positions = dims;
  positions.erase(positions.begin() + 1);
  kernel_case c{.op = "NegativeLogLikelihoodLoss",
                .inputs = {random_floats(dims, 1, -5, 0), random_integers(target, positions, 2, 0, dims[1])}};
  if (weighted)
    c.inputs.push_back(random_floats({dims[1]}, 3, 0.5f, 2));
  c.attrs.set("reduction", reduction);
  return c;
}

} // namespace

TEST_CASE("GPU losses: each, their sum, their weighted mean", "[vulkan]") {
  for (const char* reduction : {"none", "sum", "mean"})
    for (bool weighted : {false, true}) {
      check_gpu_kernels(loss({3, 5}, dtype::int64, reduction, weighted));
      check_gpu_kernels(loss({2, 7, 3, 5}, dtype::int32, reduction, weighted), true);
      check_gpu_kernels(loss({3, 2, 9001}, dtype::int64, reduction, weighted)); // in parts
      kernel_case c = loss({4, 3, 70}, dtype::int64, reduction, weighted);
      c.attrs.set("ignore_index", int64_t{-1});
      for (int64_t i = 0; i < c.inputs[1].size(); i += 3)
        c.inputs[1].mutable_data<int64_t>()[i] = -1;
      check_gpu_kernels(c);
      std::fill_n(c.inputs[1].mutable_data<int64_t>(), c.inputs[1].size(), -1); // a mean of nothing is NaN
      check_gpu_kernels(c);
      check_gpu_kernels(loss({0, 3}, dtype::int64, reduction, weighted));
    }
}

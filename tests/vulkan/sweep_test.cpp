// Products and convolutions of random shapes, every kernel that offers itself, against float64.
#include "support/catch.hpp"
#include "support/kernel_case.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

using generator = std::mt19937_64;

int64_t between(generator& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

/// Sizes that kernels treat differently: small, odd, multiples of their tiles.
int64_t some_size(generator& random) {
  switch (between(random, 0, 3)) {
    case 0: return between(random, 1, 9);
    case 1: return 16 * between(random, 1, 12);
    case 2: return 8 * between(random, 1, 20);
    default: return between(random, 10, 150);
  }
}

/// Errors of sums grow with their length: tolerances for `k` products of numbers below 1.
void set_tolerance(kernel_case& c, int64_t k) {
  c.rtol = 1e-5;
  c.atol = 2e-7 * static_cast<double>(k);
  c.in_double = true;
}

} // namespace

TEST_CASE("GPU products of random shapes agree with float64", "[vulkan][sweep]") {
  generator random(11);
  for (int i = 0; i < 24; ++i) {
    const int64_t m = some_size(random), n = some_size(random), k = some_size(random);
    kernel_case c{.op = "MatMul", .inputs = {random_floats({m, k}, random()), random_floats({k, n}, random())}};
    c.constants = between(random, 0, 1) ? 2u : 0u;
    set_tolerance(c, k);
    check_gpu_kernels(c, i % 2 == 1);
  }
}

TEST_CASE("GPU convolutions of random shapes agree with float64", "[vulkan][sweep]") {
  generator random(12);
  for (int i = 0; i < 24; ++i) {
    const int64_t groups = between(random, 0, 3) == 0 ? 2 : 1, in = groups * between(random, 1, 24);
    const int64_t out = groups * between(random, 1, 24), kernel = between(random, 1, 3), size = between(random, 3, 17);
    kernel_case c{.op = "Conv",
                  .inputs = {random_floats({between(random, 1, 2), in, size, size + 2}, random()),
                             random_floats({out, in / groups, kernel, kernel}, random()),
                             random_floats({out}, random())}};
    c.attrs.set("group", groups);
    c.attrs.set("strides", std::vector<int64_t>{between(random, 1, 2), 1});
    c.attrs.set("pads", std::vector<int64_t>{kernel / 2, between(random, 0, 1), 0, kernel / 2});
    c.constants = between(random, 0, 1) ? 6u : 0u;
    set_tolerance(c, in / groups * kernel * kernel);
    check_gpu_kernels(c, i % 2 == 1);
  }
}

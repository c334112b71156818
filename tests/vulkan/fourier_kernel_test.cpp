#include "support/catch.hpp"
#include "support/kernel_case.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

tensor number(int64_t value) {
  return tensor::of<int64_t>({}, std::vector<int64_t>{value});
}

kernel_case dft(tensor x, const tensor& length, int64_t axis, bool inverse, bool onesided) {
  kernel_case c{.op = "DFT", .inputs = {std::move(x), length, number(axis)}, .opset = 20, .atol = 1e-5};
  c.attrs.set("inverse", int64_t{inverse});
  c.attrs.set("onesided", int64_t{onesided});
  return c;
}

} // namespace

TEST_CASE("GPU DFT: lengths, axes, real and complex, onesided and inverse", "[vulkan]") {
  for (int64_t n : {1, 2, 5, 16, 64, 100}) {
    for (bool inverse : {false, true})
      check_gpu_kernels(dft(random_floats({2, n, 3, 2}, 1), tensor(), 1, inverse, false));
    check_gpu_kernels(dft(random_floats({3, n, 1}, 1), tensor(), -2, false, false));
    check_gpu_kernels(dft(random_floats({3, n, 1}, 1), tensor(), -2, false, true));
    check_gpu_kernels(dft(random_floats({3, n / 2 + 1, 2}, 1), number(n), -2, true, true));
    check_gpu_kernels(dft(random_floats({3, n, 2}, 1), number(n + 3), 1, false, false));
    check_gpu_kernels(dft(random_floats({3, n + 5, 2}, 1), number(n), 1, true, false));
  }
  kernel_case half = dft(random_floats({3, 32, 2}, 1), tensor(), 1, false, false);
  half.atol = 2e-2;
  check_gpu_kernels(half, true);
  kernel_case precise = dft(to_type(random_floats({2, 48, 2}, 1), dtype::float64), tensor(), 1, false, false);
  precise.rtol = precise.atol = 1e-12;
  check_gpu_kernels(precise);
  kernel_case old{.op = "DFT", .inputs = {random_floats({2, 12, 3, 1}, 1)}, .opset = 17, .atol = 1e-5};
  old.attrs.set("axis", int64_t{2});
  check_gpu_kernels(old);
}

TEST_CASE("GPU STFT: windows and frames", "[vulkan]") {
  for (int64_t n : {16, 11}) {
    kernel_case c{
        .op = "STFT", .inputs = {random_floats({2, 70, 1}, 1), number(5), random_floats({n}, 2)}, .atol = 1e-5};
    check_gpu_kernels(c);
    c.attrs.set("onesided", int64_t{0});
    check_gpu_kernels(c);
    c.inputs = {random_floats({2, 70, 2}, 1), number(7), tensor(), number(n)};
    check_gpu_kernels(c);
  }
}

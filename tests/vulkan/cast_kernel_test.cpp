#include "support/catch.hpp"
#include "support/kernel_case.hpp"
#include "tensor/convert.hpp"

#include <limits>

using namespace troupe;
using namespace troupe::test;

namespace {

/// Numbers around every type's limits.
tensor values_of(dtype type) {
  constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const double values[] = {0,      -0.,  0.5,   -0.5, 1,    -1,     1.9,  -1.9,     126.9,     127,   128,    -128,
                           -128.9, -129, 255.5, 256,  -255, 1000.7, 3e4,  -3e4,     7e4,       2.2e9, -2.2e9, 4.2e9,
                           4.4e9,  1e10, -1e10, 9e18, 1e19, -1e19,  1e-7, infinity, -infinity, nan};
  const tensor wide = tensor::of<double>({static_cast<int64_t>(std::size(values))}, values);
  if (type == dtype::boolean)
    return random_integers(dtype::boolean, {33}, 1, 0, 2);
  tensor t(type, wide.dims());
  convert(wide.view(), t.mutable_ref());
  return t;
}

} // namespace

TEST_CASE("GPU Cast converts every pair of types", "[vulkan]") {
  const auto all = {dtype::float32, dtype::float16, dtype::int64, dtype::int32,
                    dtype::uint32,  dtype::int8,    dtype::uint8, dtype::boolean};
  for (dtype from : all)
    for (dtype to : all) {
      attributes attrs;
      attrs.set("to", static_cast<int64_t>(to));
      check_gpu_kernels({.op = "Cast", .inputs = {values_of(from)}, .attrs = attrs, .rtol = 0, .atol = 0});
    }
  check_gpu_kernels({.op = "CastLike", .inputs = {random_floats({2, 1031}, 1, -300, 300), values_of(dtype::int8)}});
}

TEST_CASE("GPU ToFloat16 keeps finite what is finite", "[vulkan]") {
  check_gpu_kernels(
      {.op = "ToFloat16", .inputs = {values_of(dtype::float32)}, .domain = "troupe", .rtol = 0, .atol = 0});
  check_gpu_kernels({.op = "ToFloat16", .inputs = {random_floats({3, 1031}, 1, -7e4f, 7e4f)}, .domain = "troupe"});
}

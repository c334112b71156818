#include "support/catch.hpp"
#include "support/kernel_case.hpp"
#include "tensor/convert.hpp"

#include <cstring>
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

constexpr dtype all_types[] = {dtype::float32,        dtype::float16,        dtype::bfloat16,   dtype::float64,
                               dtype::float8e4m3fn,   dtype::float8e4m3fnuz, dtype::float8e5m2, dtype::int8,
                               dtype::float8e5m2fnuz, dtype::int16,          dtype::int32,      dtype::int64,
                               dtype::uint8,          dtype::uint16,         dtype::uint32,     dtype::uint64,
                               dtype::boolean,        dtype::int4,           dtype::uint4};

void check_cast(dtype from, dtype to, bool saturates) {
  attributes attrs;
  attrs.set("to", static_cast<int64_t>(to));
  attrs.set("saturate", int64_t{saturates});
  check_gpu_kernels({.op = "Cast", .inputs = {values_of(from)}, .attrs = attrs, .rtol = 0, .atol = 0});
}

} // namespace

TEST_CASE("GPU Cast to 8-bit floats rounds as the reference does, saturating or not", "[vulkan]") {
  tensor bits(dtype::uint16, {1 << 16}); // all float16
  for (int i = 0; i < 1 << 16; ++i)
    bits.mutable_data<uint16_t>()[i] = static_cast<uint16_t>(i);
  tensor halves(dtype::float16, bits.dims());
  std::memcpy(halves.mutable_data<float16>(), bits.data(), static_cast<size_t>(bits.bytes()));
  for (dtype to : {dtype::float8e4m3fn, dtype::float8e4m3fnuz, dtype::float8e5m2, dtype::float8e5m2fnuz})
    for (bool saturates : {false, true}) {
      check_cast(dtype::float32, to, saturates);
      attributes attrs;
      attrs.set("to", static_cast<int64_t>(to));
      attrs.set("saturate", int64_t{saturates});
      check_gpu_kernels({.op = "Cast", .inputs = {halves}, .attrs = attrs});
    }
}

TEST_CASE("GPU Cast converts every pair of types", "[vulkan]") {
  for (dtype from : all_types)
    for (dtype to : all_types)
      check_cast(from, to, true);
  check_gpu_kernels({.op = "CastLike", .inputs = {random_floats({2, 1031}, 1, -300, 300), values_of(dtype::int8)}});
}

TEST_CASE("GPU ToFloat16 keeps finite elements finite", "[vulkan]") {
  check_gpu_kernels(
      {.op = "ToFloat16", .inputs = {values_of(dtype::float32)}, .domain = "troupe", .rtol = 0, .atol = 0});
  check_gpu_kernels({.op = "ToFloat16", .inputs = {random_floats({3, 1031}, 1, -7e4f, 7e4f)}, .domain = "troupe"});
}

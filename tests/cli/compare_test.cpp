// How outputs are compared with expected ones.
#include "cli/compare.hpp"
#include "support/catch.hpp"
#include "tensor/convert.hpp"

using namespace troupe;
using namespace troupe::cli;

namespace {

tensor numbers(dtype type, std::vector<float> values) {
  tensor t(type, {static_cast<int64_t>(values.size())});
  convert(tensor::of<float>(t.dims(), values).view(), t.mutable_ref());
  return t;
}

bool passes(dtype type, std::vector<float> got, const std::vector<float>& want) {
  const tensor expected = numbers(type, want);
  return compare(numbers(type, std::move(got)), expected, on_scale_of(expected, {1e-3, 1e-4})).difference.empty();
}

} // namespace

TEST_CASE("elements are compared on the scale of their output", "[cli]") {
  CHECK(passes(dtype::float32, {100, 0.009f}, {100, 0}));
  CHECK_FALSE(passes(dtype::float32, {100, 0.02f}, {100, 0}));
  CHECK_FALSE(passes(dtype::float32, {1, 0.002f}, {1, 0}));
}

TEST_CASE("elements of 16 bits may be a step of their type apart", "[cli]") {
  CHECK(passes(dtype::bfloat16, {1.0078125f}, {1}));
  CHECK_FALSE(passes(dtype::bfloat16, {1.0234375f}, {1}));
  CHECK(passes(dtype::float16, {1.0009765625f}, {1}));
  CHECK_FALSE(passes(dtype::float16, {1.0029296875f}, {1}));
  CHECK_FALSE(passes(dtype::float32, {1.0078125f}, {1}));
}

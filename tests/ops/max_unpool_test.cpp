#include "ops/run_op.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

attributes window(int_list kernel, int_list strides, int_list pads = {}) {
  attributes attrs = attrs_of({{"kernel_shape", std::move(kernel)}, {"strides", std::move(strides)}});
  if (!pads.empty())
    attrs.set("pads", std::move(pads));
  return attrs;
}

tensor indices(shape dims, std::vector<int64_t> values) {
  return tensor::of<int64_t>(std::move(dims), values);
}

} // namespace

TEST_CASE("MaxUnpool puts back the elements that MaxPool took", "[ops][unpool]") {
  const tensor x = floats({2, 1, 2, 4}, {1, 5, 2, 7, 3, 4, 9, 6, -8, -5, -2, -7, -3, -4, -9, -6});
  const attributes attrs = window({2, 2}, {2, 2});
  const auto pooled = run_op("MaxPool", 12, attrs, {x}, 2);
  const tensor y = run_op("MaxUnpool", 11, attrs, {pooled[0], pooled[1]})[0];
  CHECK(y.dims() == x.dims());
  CHECK(elements(y) == std::vector<double>{0, 5, 0, 0, 0, 0, 9, 0, 0, 0, -2, 0, -3, 0, 0, 0});
}

TEST_CASE("MaxUnpool's sizes follow stride, kernel and pads; the last of equal indices wins", "[ops][unpool]") {
  const tensor x = floats({1, 1, 3}, {1, 2, 3});
  const tensor y = run_op("MaxUnpool", 22, window({3}, {2}, {1, 0}), {x, indices({1, 1, 3}, {5, 0, 5})})[0];
  CHECK(y.dims() == shape{1, 1, 6});
  CHECK(elements(y) == std::vector<double>{2, 0, 0, 0, 0, 3});
}

TEST_CASE("MaxUnpool into a larger output leaves zeros elsewhere", "[ops][unpool]") {
  // Indices count in [1, 2, 2, 2, 2].
  const tensor x = floats({1, 2, 1, 1, 1}, {7, 8}), at = indices({1, 2, 1, 1, 1}, {3, 12});
  const tensor y = run_op("MaxUnpool", 9, window({2, 2, 2}, {2, 2, 2}), {x, at, longs({1, 2, 2, 3, 2})})[0];
  CHECK(y.dims() == shape{1, 2, 2, 3, 2});
  std::vector<double> expected(24, 0);
  expected[3] = 7;  // (0, 0, 1, 1)
  expected[18] = 8; // (1, 1, 0, 0)
  CHECK(elements(y) == expected);
  const tensor none(dtype::float64, {0, 2, 3});
  CHECK(run_op("MaxUnpool", 9, window({2}, {2}), {none, tensor(dtype::int64, {0, 2, 3})})[0].dims() == shape{0, 2, 6});
}

TEST_CASE("MaxUnpool refuses operands that do not fit", "[ops][unpool]") {
  const tensor x = floats({1, 1, 2}, {1, 2}), at = indices({1, 1, 2}, {0, 3});
  const auto refuses = [](const attributes& attrs, const std::vector<tensor>& inputs, const char* text) {
    CHECK_THROWS_WITH(run_op("MaxUnpool", 11, attrs, inputs), Catch::Contains(text));
  };
  const attributes attrs = window({2}, {2});
  refuses(attrs, {x, indices({1, 1, 2}, {0, 4})}, "index 4 at position 1 is outside of [1, 1, 4]");
  refuses(attrs, {x, indices({1, 1, 2}, {-1, 0})}, "index -1 at position 0");
  refuses(attrs, {x, indices({1, 2, 1}, {0, 1})}, "indices and the input");
  refuses(attrs, {x, tensor::of<int32_t>({1, 1, 2}, std::vector<int32_t>{0, 1})}, "indices are int64");
  refuses(attrs, {x, at, longs({1, 1, 3})}, "smaller than [1, 1, 4]");
  refuses(attrs, {x, at, longs({1, 4})}, "output_shape");
  refuses(window({2, 2}, {2, 2}), {x, at}, "kernel_shape has 2 elements");
  refuses(window({2}, {2}, {3, 3}), {x, at}, "pads are larger");
  refuses({}, {x, at}, "kernel_shape");
  CHECK_THROWS_AS(run_op("MaxUnpool", 11, attrs, {x, at, longs({1, int64_t{1} << 40, int64_t{1} << 40})}), error);
}

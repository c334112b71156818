#include "ops/run_op.hpp"
#include "support/catch.hpp"

#include <cmath>

using namespace troupe;
using namespace troupe::testing;

namespace {

std::vector<double> det(const tensor& x) {
  return elements(run_op("Det", 22, {}, {x})[0]);
}

} // namespace

TEST_CASE("Det is that of each matrix, whatever row the pivot is in", "[ops][det]") {
  const tensor x = floats({2, 2, 3, 3}, {2, 0, 0, 0, 3, 0, 0, 0, 4,   // diagonal
                                         0, 1, 0, 1, 0, 0, 0, 0, 1,   // a swap
                                         0, 0, 1, 1, 0, 0, 0, 1, 0,   // a cycle
                                         1, 2, 3, 4, 5, 6, 7, 8, 9}); // singular
  const tensor y = run_op("Det", 11, {}, {x})[0];
  CHECK(y.dims() == shape{2, 2});
  const std::vector<double> got = elements(y);
  CHECK(got[0] == 24);
  CHECK(got[1] == -1);
  CHECK(got[2] == 1);
  CHECK(got[3] == Approx(0).margin(1e-6));
  CHECK(run_op("Det", 11, {}, {floats({1, 1}, {-3})})[0].dims().empty());
}

TEST_CASE("Det of a Hilbert matrix keeps its digits", "[ops][det]") {
  tensor x(dtype::float64, {4, 4});
  for (int64_t i = 0; i < 16; ++i)
    x.mutable_data<double>()[i] = 1. / static_cast<double>(i / 4 + i % 4 + 1);
  CHECK(det(x)[0] == Approx(1. / 6048000).epsilon(1e-10));
}

TEST_CASE("Det of no rows is 1, and a NaN stays", "[ops][det]") {
  CHECK(det(tensor(dtype::float32, {2, 0, 0})) == std::vector<double>{1, 1});
  CHECK(det(tensor(dtype::float32, {0, 3, 3})).empty());
  CHECK(det(floats({2, 2}, {0, 0, 0, 0})) == std::vector<double>{0});
  CHECK(std::isnan(det(floats({2, 2}, {0, 1, NAN, 1}))[0]));
  CHECK(std::isnan(det(floats({3, 3}, {1, 0, 0, NAN, 1, 0, 0, 0, 1}))[0]));
}

TEST_CASE("Det takes every float type", "[ops][det]") {
  for (const dtype type : {dtype::float16, dtype::bfloat16, dtype::float64}) {
    tensor x(type, {2, 2});
    visit_float(type, [&]<class T>(type_tag<T>) {
      const float values[] = {1, 2, 3, 4};
      std::transform(values, values + 4, x.mutable_data<T>(), [](float v) { return T(v); });
    });
    CHECK(det(x) == std::vector<double>{-2});
  }
}

TEST_CASE("Det refuses matrices that are not square", "[ops][det]") {
  CHECK_THROWS_WITH(det(ramp({2, 3})), Catch::Contains("rows and columns"));
  CHECK_THROWS_WITH(det(ramp({2})), Catch::Contains("rank 1"));
}

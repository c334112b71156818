#include "ops/run_op.hpp"
#include "support/catch.hpp"
#include "support/graph_builder.hpp"

#include <limits>

using namespace troupe;
using namespace troupe::testing;

TEST_CASE("Reductions walk inner, outer and mixed axes alike", "[ops]") {
  const tensor x = ramp({2, 3, 4});
  const auto sum = [&](int_list axes, int64_t keep) {
    return run_op("ReduceSum", 11, attrs_of({{"axes", std::move(axes)}, {"keepdims", keep}}), {x})[0];
  };
  CHECK(elements(sum({2}, 0)) == std::vector<double>{6, 22, 38, 54, 70, 86});
  CHECK(elements(sum({0}, 0)) == std::vector<double>{12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34});
  CHECK(elements(sum({1}, 0)) == std::vector<double>{12, 15, 18, 21, 48, 51, 54, 57});
  CHECK(elements(sum({0, -1}, 0)) == std::vector<double>{60, 92, 124});
  CHECK(elements(sum({}, 0)) == std::vector<double>{276});
  CHECK(sum({0, 2}, 1).dims() == shape{1, 3, 1});
  CHECK_THROWS_AS(sum({3}, 0), error);
}

TEST_CASE("Axes as an input: absent or empty means all, or none if asked", "[ops]") {
  const tensor x = floats({2, 2}, {1, -2, 3, -4});
  const auto noop = attrs_of({{"noop_with_empty_axes", int64_t{1}}, {"keepdims", int64_t{0}}});
  CHECK(elements(run_op("ReduceSum", 13, {}, {x, longs({})})[0]) == std::vector<double>{-2});
  CHECK(elements(run_op("ReduceSum", 13, noop, {x, longs({})})[0]) == elements(x));
  CHECK(elements(run_op("ReduceSum", 13, noop, {x})[0]) == elements(x));
  CHECK(elements(run_op("ReduceMax", 18, noop, {x, longs({-1})})[0]) == std::vector<double>{1, 3});
}

TEST_CASE("Every reduction has its formula", "[ops]") {
  const tensor x = floats({4}, {1, -2, 3, -4});
  const auto of = [&](const char* op) { return elements(run_op(op, 18, {}, {x}).at(0)).at(0); };
  CHECK(of("ReduceMean") == -0.5);
  CHECK(of("ReduceMax") == 3);
  CHECK(of("ReduceMin") == -4);
  CHECK(of("ReduceProd") == 24);
  CHECK(of("ReduceL1") == 10);
  CHECK(of("ReduceL2") == Approx(5.477226));
  CHECK(of("ReduceSumSquare") == 30);
  CHECK(of("ReduceLogSumExp") == Approx(3.1336434));
  CHECK(elements(run_op("ReduceLogSum", 18, {}, {floats({2}, {1, 2})})[0])[0] == Approx(1.0986123));
  CHECK(elements(run_op("ReduceLogSumExp", 18, {}, {floats({2}, {1000, 1000})})[0])[0] == Approx(1000.6931));
}

TEST_CASE("Empty sets give the identity", "[ops]") {
  const tensor x = floats({2, 0}, {});
  const auto of = [&](const char* op) { return elements(run_op(op, 18, {}, {x, longs({1})}).at(0)); };
  CHECK(of("ReduceSum") == std::vector<double>{0, 0});
  CHECK(of("ReduceProd") == std::vector<double>{1, 1});
  CHECK(of("ReduceMax")[0] == -std::numeric_limits<double>::infinity());
  CHECK(of("ReduceMin")[1] == std::numeric_limits<double>::infinity());
  CHECK(of("ReduceLogSumExp")[0] == -std::numeric_limits<double>::infinity());
  tensor none(dtype::boolean, {0});
  CHECK(run_op("ReduceMin", 20, {}, {none})[0].data<uint8_t>()[0] == 1);
  CHECK(run_op("ReduceMax", 20, {}, {none})[0].data<uint8_t>()[0] == 0);
}

TEST_CASE("Integer sums are exact and NaN is never lost", "[ops]") {
  const int64_t big = (int64_t{1} << 62) + 1;
  CHECK(run_op("ReduceSum", 13, {}, {longs({big, -3})})[0].values<int64_t>()[0] == big - 3);
  CHECK(run_op("ReduceMean", 18, {}, {longs({-3, -4})})[0].values<int64_t>()[0] == -3);
  CHECK(std::isnan(elements(run_op("ReduceMax", 18, {}, {floats({3}, {1, NAN, 2})})[0])[0]));
}

TEST_CASE("Norms and logarithms of integers are integers, whatever comes out", "[ops]") {
  const auto of = [](const char* op, const tensor& x) { return run_op(op, 18, {}, {x})[0].values<int64_t>()[0]; };
  CHECK(of("ReduceL2", longs({3, 4})) == 5);
  CHECK(of("ReduceL2", longs({INT64_MAX, INT64_MAX})) == INT64_MAX);
  CHECK(of("ReduceLogSum", longs({0})) == INT64_MIN);
  CHECK(of("ReduceLogSum", longs({-1})) == 0); // no number
  CHECK(of("ReduceLogSumExp", longs({INT64_MIN, INT64_MIN})) == INT64_MIN);
}

TEST_CASE("Known shape arithmetic stays known", "[ops]") {
  test::graph_builder b(18);
  const value_id product = b.inferred("ReduceProd", {b.known({2}, {dim::symbol("batch"), 4})});
  REQUIRE(b.g.values[product].known);
  CHECK(b.g.values[product].known->at(0) == dim::symbol("batch") * dim(4));
}

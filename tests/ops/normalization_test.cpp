#include "ops/run_op.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

void check_near(const tensor& t, const std::vector<double>& expected) {
  const std::vector<double> actual = elements(t);
  REQUIRE(actual.size() == expected.size());
  for (size_t i = 0; i < actual.size(); ++i)
    CHECK(actual[i] == Approx(expected[i]).margin(1e-5));
}

} // namespace

TEST_CASE("Softmax flattens before opset 13 and takes one axis since", "[ops]") {
  const tensor x = floats({1, 3, 1}, {1, 2, 4});
  check_near(run_op("Softmax", 11, {}, {x})[0], {0.04201007, 0.11419520, 0.84379473});
  check_near(run_op("Softmax", 13, {}, {x})[0], {1, 1, 1});
  check_near(run_op("LogSoftmax", 13, attrs_of({{"axis", int64_t{1}}}), {x})[0],
             {-3.16984602, -2.16984602, -0.16984602});
  check_near(run_op("Hardmax", 13, attrs_of({{"axis", int64_t{-2}}}), {x})[0], {0, 0, 1});
  CHECK_THROWS_AS(run_op("Softmax", 13, attrs_of({{"axis", int64_t{3}}}), {x}), error);
}

TEST_CASE("BatchNormalization uses given statistics, or the batch's when training", "[ops]") {
  const tensor x = floats({2, 1, 2}, {1, 2, 3, 6}), one = floats({1}, {1}), two = floats({1}, {2});
  const auto exact = attrs_of({{"epsilon", 0.f}});
  check_near(run_op("BatchNormalization", 9, exact, {x, two, one, two, floats({1}, {4})})[0], {0, 1, 2, 5});
  const auto training = attrs_of({{"epsilon", 0.f}, {"training_mode", int64_t{1}}, {"momentum", 0.5f}});
  const auto y = run_op("BatchNormalization", 15, training, {x, one, one, two, floats({1}, {4})}, 3);
  check_near(y[0], {1 - 2 / 1.8708287, 1 - 1 / 1.8708287, 1, 1 + 3 / 1.8708287}); // mean 3, variance 3.5
  check_near(y[1], {2.5});
  check_near(y[2], {3.75});
  CHECK_THROWS_AS(run_op("BatchNormalization", 9, {}, {x, floats({2}, {1, 2}), one, one, one}), error);
}

TEST_CASE("Layer and RMS norm follow their formulas", "[ops]") {
  const tensor x = floats({1, 4}, {1, 2, 3, 6}), scale = floats({4}, {1, 1, 1, 2});
  const auto y = run_op("LayerNormalization", 17, {}, {x, scale, floats({1}, {1})}, 3);
  check_near(y[0], {1 - 1.069043, 1 - 0.5345217, 1, 1 + 2 * 1.603565});
  check_near(y[1], {3});
  check_near(y[2], {0.5345217});
  check_near(run_op("RMSNormalization", 23, {}, {x, scale})[0], {0.2828426, 0.5656852, 0.8485278, 2 * 1.6970555});
  CHECK_THROWS_AS(run_op("LayerNormalization", 17, {}, {x, floats({3}, {1, 1, 1})}), error);
}

TEST_CASE("Group and instance norm split the channels", "[ops]") {
  const tensor x = floats({1, 2, 2}, {0, 2, 4, 10}), scale = floats({2}, {1, 2}), bias = floats({2}, {0, 1});
  const auto exact = attrs_of({{"epsilon", 0.f}});
  check_near(run_op("InstanceNormalization", 6, exact, {x, scale, bias})[0], {-1, 1, -1, 3});
  const auto one_group = attrs_of({{"epsilon", 0.f}, {"num_groups", int64_t{1}}});
  const double unit = 1 / 3.7416574; // mean 4, variance 14
  check_near(run_op("GroupNormalization", 21, one_group, {x, scale, bias})[0],
             {-4 * unit, -2 * unit, 1, 1 + 12 * unit});
  CHECK_THROWS_AS(run_op("GroupNormalization", 21, attrs_of({{"num_groups", int64_t{3}}}), {x, scale, bias}), error);
}

TEST_CASE("Norms without parameters", "[ops]") {
  const tensor x = floats({1, 2, 1, 2}, {3, 0, 4, 0});
  check_near(run_op("LpNormalization", 1, attrs_of({{"axis", int64_t{1}}}), {x})[0], {0.6, 0, 0.8, 0});
  check_near(run_op("MeanVarianceNormalization", 13, {}, {x})[0], {1, -1, 1, -1});
  const auto attrs = attrs_of({{"size", int64_t{2}}, {"alpha", 2.f}, {"beta", 1.f}});
  check_near(run_op("LRN", 13, attrs, {x})[0], {3.0 / 26, 0, 4.0 / 17, 0}); // channel c sees c and c + 1
}

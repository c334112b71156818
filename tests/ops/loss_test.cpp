#include "ops/run_op.hpp"
#include "support/catch.hpp"

#include <cmath>

using namespace troupe;
using namespace troupe::testing;

namespace {

/// −x by class for two positions of three classes each: [2, 3, 1].
const tensor scores = floats({2, 3, 1}, {-1, -2, -4, -8, -16, -32});
const tensor weights = floats({3}, {1, 10, 100});

tensor classes(shape dims, std::vector<int64_t> values) {
  return tensor::of<int64_t>(std::move(dims), values);
}

attributes reduced(const char* reduction) {
  return attrs_of({{"reduction", std::string(reduction)}});
}

std::vector<double> nll(const attributes& attrs, std::vector<tensor> inputs) {
  return elements(run_op("NegativeLogLikelihoodLoss", 13, attrs, std::move(inputs))[0]);
}

} // namespace

TEST_CASE("NegativeLogLikelihoodLoss reduces as it is asked to", "[ops][loss]") {
  const tensor target = classes({2, 1}, {1, 2});
  CHECK(nll(reduced("none"), {scores, target}) == std::vector<double>{2, 32});
  CHECK(nll(reduced("sum"), {scores, target}) == std::vector<double>{34});
  CHECK(nll(reduced("mean"), {scores, target}) == std::vector<double>{17});
  CHECK(nll({}, {scores, target}) == std::vector<double>{17});
  CHECK(nll(reduced("none"), {scores, target, weights}) == std::vector<double>{20, 3200});
  CHECK(nll(reduced("sum"), {scores, target, weights}) == std::vector<double>{3220});
  CHECK(nll({}, {scores, target, weights})[0] == Approx(3220. / 110));
  const tensor narrow = tensor::of<int32_t>({2, 1}, std::vector<int32_t>{0, 1});
  CHECK(nll(reduced("none"), {scores, narrow}) == std::vector<double>{1, 16});
}

TEST_CASE("An ignored element has neither loss nor weight, whatever class it names", "[ops][loss]") {
  for (const int64_t ignored : {1, -100, 7}) {
    const tensor target = classes({2, 1}, {ignored, 0});
    const auto run = [&](const char* reduction, std::vector<tensor> inputs) {
      attributes attrs = reduced(reduction);
      attrs.set("ignore_index", ignored);
      return nll(attrs, std::move(inputs));
    };
    CHECK(run("none", {scores, target, weights}) == std::vector<double>{0, 8});
    CHECK(run("sum", {scores, target}) == std::vector<double>{8});
    CHECK(run("mean", {scores, target}) == std::vector<double>{8});
    CHECK(run("mean", {scores, target, weights}) == std::vector<double>{8});
    CHECK(std::isnan(run("mean", {scores, classes({2, 1}, {ignored, ignored})})[0]));
  }
}

TEST_CASE("Losses of no positions are empty, zero or undefined", "[ops][loss]") {
  const tensor x(dtype::float32, {2, 3, 0}), target(dtype::int64, {2, 0});
  CHECK(nll(reduced("none"), {x, target}).empty());
  CHECK(nll(reduced("sum"), {x, target}) == std::vector<double>{0});
  CHECK(std::isnan(nll({}, {x, target})[0]));
}

TEST_CASE("Losses find their class between positions of several axes", "[ops][loss]") {
  const tensor x = ramp({2, 3, 2, 2}, -1), target = classes({2, 2, 2}, {0, 1, 2, 0, 2, 1, 0, 1});
  std::vector<double> expected;
  for (int64_t i = 0; i < 8; ++i)
    expected.push_back(static_cast<double>((i / 4 * 3 + target.values<int64_t>()[static_cast<size_t>(i)]) * 4 + i % 4));
  CHECK(nll(reduced("none"), {x, target}) == expected);
}

TEST_CASE("Losses take every float type, and sum in double", "[ops][loss]") {
  for (const dtype type : {dtype::float16, dtype::bfloat16, dtype::float64}) {
    tensor x(type, {4096, 2});
    visit_float(type, [&]<class T>(type_tag<T>) { std::fill_n(x.mutable_data<T>(), x.size(), T(-1.f)); });
    tensor target(dtype::int64, {4096});
    std::fill_n(target.mutable_data<int64_t>(), 4096, int64_t{1});
    CHECK(nll(reduced("sum"), {x, target}) == std::vector<double>{4096}); // a sum in float16 would stop at 2048
    CHECK(nll({}, {x, target}) == std::vector<double>{1});
  }
}

TEST_CASE("SoftmaxCrossEntropyLoss is the loss of a LogSoftmax, which is its second result", "[ops][loss]") {
  const tensor x = floats({1, 3}, {0, std::log(2.f), std::log(5.f)}), target = classes({1}, {1});
  const auto y = run_op("SoftmaxCrossEntropyLoss", 13, {}, {x, target}, 2);
  CHECK(elements(y[0])[0] == Approx(std::log(4.)));
  CHECK(y[0].dims().empty());
  CHECK(y[1].dims() == shape{1, 3});
  CHECK(elements(y[1])[2] == Approx(std::log(5. / 8)));
  const auto spatial = run_op("SoftmaxCrossEntropyLoss", 12, reduced("none"),
                              {ramp({1, 2, 3}), classes({1, 3}, {0, 1, 0}), floats({2}, {1, 2})});
  CHECK(spatial[0].dims() == shape{1, 3});
  CHECK(elements(spatial[0])[0] == Approx(std::log(1 + std::exp(3.))));
  CHECK(elements(spatial[0])[1] == Approx(2 * std::log(1 + std::exp(-3.))));
  attributes ignoring = reduced("sum");
  ignoring.set("ignore_index", int64_t{-1});
  CHECK(elements(run_op("SoftmaxCrossEntropyLoss", 13, ignoring, {x, classes({1}, {-1})})[0]) ==
        std::vector<double>{0});
}

TEST_CASE("Losses refuse operands that do not fit", "[ops][loss]") {
  const tensor target = classes({2, 1}, {1, 2});
  const auto refuses = [](const attributes& attrs, const std::vector<tensor>& inputs, const char* text) {
    for (const char* op : {"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"})
      CHECK_THROWS_WITH(run_op(op, 13, attrs, inputs), Catch::Contains(text));
  };
  refuses({}, {scores, classes({2, 1}, {0, 3})}, "target 3 at position 1 is neither one of the 3 classes");
  refuses({}, {scores, classes({2, 1}, {-1, 0})}, "target -1 at position 0");
  refuses(attrs_of({{"ignore_index", int64_t{-2}}}), {scores, classes({2, 1}, {-1, 0})}, "target -1 at position 0");
  refuses(reduced("average"), {scores, target}, "'average', not none, sum or mean");
  refuses({}, {scores, classes({2}, {1, 2})}, "targets");
  refuses({}, {scores, classes({1, 2}, {1, 2})}, "targets");
  refuses({}, {scores, target, floats({2}, {1, 1})}, "weights and classes");
  refuses({}, {scores, target, tensor::of<double>({3}, std::vector<double>{1, 1, 1})}, "weights of type");
  refuses({}, {scores, floats({2, 1}, {1, 2})}, "int32 or int64");
  refuses({}, {floats({2}, {1, 2}), classes({}, {1})}, "rank 1");
}

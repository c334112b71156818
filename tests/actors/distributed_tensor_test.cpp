#include "actors/distributed_tensor.hpp"
#include "support/catch.hpp"
#include "support/small_models.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

const std::vector<std::string> three = {"cpu", "cpu#1", "cpu#2"};

} // namespace

TEST_CASE("a value split over devices is selected and gathered", "[engine][D7]") {
  engine e({.devices = {"cpu*3"}});
  const tensor whole = floats({4, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  const auto rows = distributed_tensor::split(e, whole, 0, three);
  REQUIRE(rows.size() == 3);
  CHECK(rows.dims() == shape{4, 2});
  CHECK(rows.select(0)->dims() == shape{2, 2});
  CHECK(values_of(e.fetch(rows.select(2))) == std::vector<float>{6, 7});
  CHECK(values_of(rows.gather(e)) == values_of(whole));
  const auto columns = distributed_tensor::split(e, whole, 1, {"cpu", "cpu#1"});
  CHECK(values_of(e.fetch(columns.select(1))) == std::vector<float>{1, 3, 5, 7});
  CHECK(values_of(columns.gather(e)) == values_of(whole));
}

TEST_CASE("stacked values are selected and gathered", "[engine][D7]") {
  engine e({.devices = {"cpu*3"}});
  const std::vector<tensor> each{floats({2}, {1, 2}), floats({2}, {3, 4}), floats({2}, {5, 6})};
  const auto stack = distributed_tensor::stack(e, each, three);
  CHECK(stack.dims() == shape{3, 2});
  CHECK(values_of(e.fetch(stack.select(1))) == std::vector<float>{3, 4});
  CHECK(stack.gather(e).dims() == shape{3, 2});
  CHECK(values_of(stack.gather(e)) == std::vector<float>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("parts are inputs of runs, and what runs leave on their devices gathers", "[engine][D7]") {
  engine e({.devices = {"cpu*2"}});
  const session model = e.load(chain(1, {dim::symbol("n"), 2}));
  const std::string out = model.outputs().at(0).name;
  const auto halves = distributed_tensor::split(e, floats({3, 2}, {0, 0, 0, 0, 0, 0}), 0, {"cpu", "cpu#1"});
  std::vector<device_tensor> results;
  for (size_t i = 0; i < halves.size(); ++i)
    results.push_back(model.run({}, {.device_inputs = {{"x", halves.select(i)}}, .keep = {out}}).kept.at(out));
  const tensor whole = distributed_tensor::of_split(results, 0).gather(e);
  CHECK(whole.dims() == shape{3, 2});
  CHECK(values_of(whole) == std::vector<float>(6, 0.5f)); // Sigmoid(0)
}

TEST_CASE("what is no value over devices is refused", "[engine][D7]") {
  engine e({.devices = {"cpu*2"}});
  const tensor whole = floats({2}, {1, 2});
  CHECK_THROWS_AS(distributed_tensor::split(e, whole, 1, {"cpu"}), error);
  CHECK_THROWS_AS(distributed_tensor::split(e, whole, 0, {}), error);
  CHECK_THROWS_AS(distributed_tensor::split(e, whole, 0, {"cpu", "tpu"}), error);
  const std::vector<tensor> unequal{floats({2}, {1, 2}), floats({1}, {1})};
  CHECK_THROWS_AS(distributed_tensor::stack(e, unequal, {"cpu", "cpu#1"}), error);
  CHECK_THROWS_AS(distributed_tensor::stack(e, unequal, {"cpu"}), error);
  CHECK_THROWS_AS(distributed_tensor::of_stack({nullptr}), error);
  CHECK_THROWS_AS(distributed_tensor::split(e, whole, 0, {"cpu"}).select(1), error);
}

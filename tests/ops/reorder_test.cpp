#include "ops/evaluate.hpp"
#include "ops/registry.hpp"
#include "support/catch.hpp"

using namespace troupe;

TEST_CASE("Reorder changes the order of the elements, and back", "[ops]") {
  // Two channels of three positions.
  const std::vector<float> x{0, 1, 2, 10, 11, 12};
  const tensor in = tensor::of<float>({1, 2, 3}, x);
  const op_def& def = *find_op("troupe", "Reorder", 1);
  attributes forward, back;
  forward.set("to", std::string("channels_last"));
  back.set("to", std::string("plain"));
  const tensor last = evaluate(def, forward, {&in, 1}).at(0);
  CHECK(last.dims() == shape{1, 2, 3});
  CHECK(std::vector<float>(last.values<float>().begin(), last.values<float>().end()) ==
        std::vector<float>{0, 10, 1, 11, 2, 12});
  const tensor again = evaluate(def, back, {&last, 1}).at(0);
  CHECK(std::equal(x.begin(), x.end(), again.values<float>().begin()));
}

TEST_CASE("Reorder of large odd shapes loses nothing", "[ops]") {
  tensor in(dtype::int16, {3, 67, 45, 33});
  for (int64_t i = 0; i < in.size(); ++i)
    in.mutable_data<int16_t>()[i] = static_cast<int16_t>(i * 7919);
  const op_def& def = *find_op("troupe", "Reorder", 1);
  attributes forward, back;
  forward.set("to", std::string("channels_last"));
  back.set("to", std::string("plain"));
  const tensor last = evaluate(def, forward, {&in, 1}).at(0);
  const tensor again = evaluate(def, back, {&last, 1}).at(0);
  CHECK(std::equal(in.values<int16_t>().begin(), in.values<int16_t>().end(), again.values<int16_t>().begin()));
  CHECK(last.data<int16_t>()[1] == in.data<int16_t>()[45 * 33]);
}

TEST_CASE("Reorder refuses values that have no channels-last form", "[ops]") {
  const tensor in = tensor::of<float>({2}, std::vector<float>{1, 2});
  attributes a;
  a.set("to", std::string("channels_last"));
  CHECK_THROWS_AS(evaluate(*find_op("troupe", "Reorder", 1), a, {&in, 1}), error);
}

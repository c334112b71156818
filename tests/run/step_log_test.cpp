#include "run/step_log.hpp"

#include "support/catch.hpp"

using namespace troupe;
using Catch::Contains;

namespace {

kept_step step_of(int64_t floats) {
  kept_step s;
  s.inputs["x"] = tensor(dtype::float32, {floats});
  return s;
}

tensor counting(int64_t size, float offset = 0) {
  tensor t(dtype::float32, {size});
  for (int64_t i = 0; i < size; ++i)
    t.mutable_data<float>()[i] = static_cast<float>(i) + offset;
  return t;
}

tensor integers(const std::vector<int64_t>& values) {
  return tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
}

} // namespace

TEST_CASE("a log keeps steps until there is a checkpoint of theirs", "[run]") {
  step_log log(100);
  log.begin(1);
  for (int i = 0; i < 5; ++i)
    log.add(step_of(5));
  CHECK(log.reaches(1));
  CHECK_FALSE(log.is_full()); // at the limit
  log.add(step_of(6));
  CHECK(log.is_full());
  log.forget_through(3);
  CHECK_FALSE(log.is_full());
  CHECK_FALSE(log.reaches(3));
  CHECK(log.reaches(4));
  CHECK(log.at(6).inputs.at("x").dims() == shape{6});
  log.begin(2);
  CHECK(log.reaches(2));
  CHECK_FALSE(log.reaches(1));
}

TEST_CASE("a log that no checkpoint empties forgets all steps, and begins after them", "[run]") {
  step_log log(100);
  log.begin(1);
  for (int i = 0; i < 10; ++i)
    log.add(step_of(5));
  CHECK(log.reaches(1));
  log.add(step_of(1)); // beyond twice the limit
  CHECK_FALSE(log.is_full());
  CHECK_FALSE(log.reaches(11));
  CHECK(log.reaches(12));
  log.forget_through(5); // a copy that was on its way
  log.add(step_of(2));
  CHECK(log.at(12).inputs.at("x").dims() == shape{2});
}

TEST_CASE("a log goes on after a step that is given too much", "[run]") {
  step_log log(100);
  log.begin(1);
  log.add(step_of(1));
  log.add({.is_left_out = true});
  log.add(step_of(3));
  CHECK_FALSE(log.reaches(2));
  CHECK(log.reaches(3));
  CHECK(log.at(3).inputs.at("x").dims() == shape{3});
}

TEST_CASE("a log of no bytes keeps nothing", "[run]") {
  step_log log(0);
  log.begin(1);
  log.add(step_of(1));
  CHECK_FALSE(log.keeps_steps());
  CHECK_FALSE(log.reaches(1));
}

TEST_CASE("answers are compared by samples of their elements", "[run]") {
  const named_tensors before{{"y", counting(1000)}, {"n", integers({5, 6})}, {"word", tensor(dtype::string, {1})}};
  const auto samples = samples_of(before);
  REQUIRE(samples.size() == 2);
  CHECK(samples[1].elements.size() == 64);
  CHECK(samples[1].elements.values<float>()[31] == 31);
  CHECK(samples[1].elements.values<float>()[32] == 968);
  const auto difference = [&](const std::string& name, const tensor& value, bool half = false) {
    named_tensors after = before;
    after[name] = value;
    return difference_from(samples, after, half);
  };
  CHECK(difference("y", counting(1000)) == "");
  CHECK(difference("y", counting(1000, 0.9f)) == ""); // 0.001 of 984
  CHECK(difference("y", counting(1000, 2)) == "an element of 'y' is 2 instead of 0");
  CHECK(difference("y", counting(1000, 2), true) == "");
  CHECK(difference("y", counting(999)) == "'y' has dims [999] instead of [1000]");
  CHECK(difference("n", integers({5, 7})) == "an element of 'n' is 7 instead of 6");
  CHECK(difference_from(samples, {}, false) == "'n' is not among the outputs");
  tensor nan = counting(1000);
  nan.mutable_data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THAT(difference("y", nan), Contains("nan instead of 0"));
  CHECK(difference_from(samples_of({{"y", nan}}), {{"y", nan}}, false) == "");
  CHECK(samples_of({{"empty", tensor(dtype::float32, {0})}})[0].elements.size() == 0);
}

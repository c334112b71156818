// Bound state that is lost with its device, and goes on from a host copy (`bind_options::checkpoint`) from which the
// caller repeats steps. heal_test.cpp has sessions that repeat them.
#include "support/bound_values.hpp"

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

const shape three{3};

tensor x_of(uint64_t step) {
  return filled(three, static_cast<float>(step));
}

/// Takes the step after those taken, which adds its number to the state.
tensor step(bound_session& sum) {
  named_tensors inputs{{"x", x_of(sum.step() + 1)}};
  if (sum.step() == 0)
    inputs["state"] = filled(three, 0);
  return sum.run(inputs).outputs.at("y");
}

tensor y_after(uint64_t steps) {
  return filled(three, -static_cast<float>(steps * (steps + 1) / 2));
}

/// Returns the step from which a call says that steps must be repeated; 0 if it does not say so.
template <class F>
uint64_t repeated_after(F&& f, const std::string& words = {}) {
  try {
    f();
  } catch (const state_rolled_back& lost) {
    CHECK(lost.code() == errc::device_lost);
    CHECK_THAT(lost.what(), Contains(words));
    CHECK_THAT(lost.what(), Contains(fmt::format("repeat from step {}", lost.repeat_from())));
    return lost.repeat_from();
  }
  return 0;
}

bound_session summing(engine& e, uint64_t checkpoint) {
  return e.load(summing_model(three)).bind({{"next", "state"}}, {.checkpoint = checkpoint, .heal = false});
}

auto called(const std::string& name) {
  return [name](const device_info& d) { return d.name == name; };
}

} // namespace

TEST_CASE("bound state that is lost goes on from the last checkpoint, which is named", "[actors][B7][C11]") {
  const auto taken = GENERATE(range<uint64_t>(1, 8)); // before the loss
  engine e(engine_of({reference("d", {.die_at = taken}), reference("spare")}));
  bound_session sum = summing(e, 3);
  for (uint64_t n = 1; n <= taken; ++n)
    CHECK(same(step(sum), y_after(n)));
  const uint64_t from = repeated_after([&] { step(sum); }, "'d'");
  CHECK(from == taken / 3 * 3 + 1); // the copy of a step is made before the next one runs there
  CHECK(sum.step() == from - 1);
  for (uint64_t n = from; n <= 10; ++n)
    CHECK(same(step(sum), y_after(n)));
  CHECK(same(sum.fetch("next"), filled(three, 55)));
  CHECK(e.lost_devices() == std::vector<std::string>{"d"});
}

TEST_CASE("bound state on a GPU that is lost goes on from the last checkpoint", "[actors][vulkan][B7][C11]") {
  engine e(engine_of({gpu("d", {.lose_at = 9}), reference("spare")}));
  bound_session sum = summing(e, 2);
  uint64_t repeats = 0;
  while (sum.step() < 12) {
    const uint64_t n = sum.step() + 1;
    repeats += repeated_after(
                   [&] {
                     const tensor y = step(sum);
                     CHECK(same(y, y_after(n)));
                   },
                   "'d'") > 0;
  }
  CHECK(repeats == 1);
  CHECK(same(sum.fetch("next"), filled(three, 78)));
}

TEST_CASE("a device that is lost before there is a state costs a checkpoint nothing", "[actors][B7][C11]") {
  engine e(engine_of({reference("d", {.die_at = 0}), reference("spare")}));
  bound_session sum = summing(e, 2);
  for (uint64_t n = 1; n <= 5; ++n)
    CHECK(same(step(sum), y_after(n)));
}

TEST_CASE("a copy that was not complete when the device was lost is not used", "[actors][B7][C11]") {
  engine e(engine_of({reference("d", {.stall_fetches = true}), reference("spare")}));
  bound_session sum = summing(e, 2);
  for (int n = 0; n < 5; ++n)
    step(sum);
  lose_devices(e, called("d"), "the test took it");
  CHECK(repeated_after([&] { step(sum); }, "the test took it") == 1);
  for (uint64_t n = 1; n <= 5; ++n)
    CHECK(same(step(sum), y_after(n)));
}

TEST_CASE("a second loss goes back to a checkpoint made after the first", "[actors][B7][C11]") {
  engine e(engine_of({reference("a", {.die_at = 5}), reference("b", {.die_at = 4}), reference("c")}));
  bound_session sum = summing(e, 2);
  std::vector<uint64_t> repeats;
  while (sum.step() < 12)
    if (const uint64_t from = repeated_after([&] { step(sum); }); from > 0)
      repeats.push_back(from);
  // On b: step 5 from the checkpoint of step 4, then 6, 7, 8, and the loss in step 9.
  CHECK(repeats == std::vector<uint64_t>{5, 9});
  CHECK(same(sum.fetch("next"), filled(three, 78)));
}

TEST_CASE("bound state goes on when there is a device again", "[actors][B7][C11]") {
  engine e(engine_of({reference("d")}));
  bound_session sum = summing(e, 2);
  for (int n = 0; n < 5; ++n)
    step(sum);
  lose_devices(e, called("d"), "the test took it");
  for (int again = 0; again < 2; ++again)
    refuses([&] { repeated_after([&] { step(sum); }); }, errc::device_lost, "the test took it");
  add_devices(e, {reference("later")});
  CHECK(repeated_after([&] { step(sum); }, "'d'") == 5);
  CHECK(same(step(sum), y_after(5)));
}

TEST_CASE("a fetch of bound state that is lost says where to repeat from", "[actors][B7][C11]") {
  engine e(engine_of({reference("d"), reference("spare")}));
  bound_session sum = summing(e, 2);
  for (int n = 0; n < 3; ++n)
    step(sum);
  lose_devices(e, called("d"), "the test took it");
  CHECK(repeated_after([&] { sum.fetch("next"); }, "'d'") == 3);
  CHECK(same(sum.fetch("next"), filled(three, 3)));
  CHECK(same(step(sum), y_after(3)));
}

TEST_CASE("a state that begins anew is its own first checkpoint, on a device too", "[actors][B7][C11]") {
  engine e(engine_of({reference("d"), reference("spare")}));
  bound_session sum = summing(e, 4);
  for (int n = 0; n < 5; ++n)
    step(sum);
  CHECK(sum.step() == 5);
  const bool on_device = GENERATE(false, true);
  const tensor start = filled(three, 100);
  if (on_device)
    sum.run({{"x", x_of(1)}}, {.device_inputs = {{"state", e.put(start, "d")}}});
  else
    sum.run({{"x", x_of(1)}, {"state", start}});
  CHECK(sum.step() == 1);
  sum.run({{"x", x_of(2)}});
  lose_devices(e, called("d"), "the test took it");
  CHECK(repeated_after([&] { sum.run({{"x", x_of(3)}}); }) == 1);
  sum.run({{"x", x_of(1)}});
  CHECK(same(sum.fetch("next"), filled(three, 101)));
}

TEST_CASE("a checkpoint that cannot be made is told once, before the next step", "[actors][B7][C11]") {
  engine e(engine_of({reference("d", {.fail_fetches = true})}));
  bound_session sum = summing(e, 3);
  int told = 0;
  while (sum.step() < 5) { // before step 4 or 5, as soon as it is known
    const uint64_t n = sum.step() + 1;
    const error problem = thrown_by([&] {
      const tensor y = step(sum);
      CHECK(same(y, y_after(n)));
    });
    if (problem.code() == errc::internal)
      continue;
    ++told;
    CHECK(problem.code() == errc::out_of_memory);
    CHECK_THAT(problem.what(), Contains("the last checkpoint could not be made"));
    CHECK(sum.step() == n - 1);
  }
  CHECK(told == 1);
}

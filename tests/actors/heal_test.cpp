// Bound sessions that repeat the steps themselves that are lost with a device (`bind_options::heal`).
#include "support/bound_values.hpp"
#include "support/worker_process.hpp"

#include <filesystem>
#include <thread>

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

const shape three{3};

/// Takes the step after those taken, which adds its number to the state; returns its answer.
run_result step(bound_session& sum, run_options options = {}) {
  named_tensors inputs{{"x", filled(three, static_cast<float>(sum.step() + 1))}};
  if (sum.step() == 0)
    inputs["state"] = filled(three, 0);
  return sum.run(inputs, std::move(options));
}

/// Returns whether an answer is that of a step.
bool is_answer(const run_result& r, uint64_t step) {
  return same(r.outputs.at("y"), filled(three, -static_cast<float>(step * (step + 1) / 2)));
}

/// Takes steps up to `last`; all are right. Returns how many were repeated.
uint64_t take_all(bound_session& sum, uint64_t last) {
  uint64_t repeated = 0;
  while (sum.step() < last) {
    const uint64_t n = sum.step() + 1;
    const run_result r = step(sum);
    INFO("step " << n);
    REQUIRE(is_answer(r, n));
    REQUIRE(sum.step() == n);
    repeated += r.stats.repeated_steps;
  }
  return repeated;
}

bound_session summing(engine& e, const bind_options& options = {}) {
  return e.load(summing_model(three)).bind({{"next", "state"}}, options);
}

void lose(engine& e, const std::string& name) {
  lose_devices(
      e, [name](const device_info& d) { return d.name == name; }, "the test took it");
}

} // namespace

TEST_CASE("a bound session repeats the steps that are lost with a device", "[actors][B7][C11]") {
  const auto taken = GENERATE(range<uint64_t>(1, 8)); // before the loss
  const auto checkpoint = GENERATE(as<uint64_t>(), 0, 3);
  engine e(engine_of({reference("d", {.die_at = taken}), reference("spare")}));
  bound_session sum = summing(e, {.checkpoint = checkpoint});
  CHECK(take_all(sum, 12) == (checkpoint == 0 ? taken : taken % checkpoint));
  CHECK(same(sum.fetch("next"), filled(three, 78)));
  CHECK(e.lost_devices() == std::vector<std::string>{"d"});
}

TEST_CASE("a bound session on GPUs that are lost repeats steps", "[actors][vulkan][B7][C11]") {
  engine e(engine_of({gpu("d", {.lose_at = 9}), gpu("e", {.lose_at = 20}), reference("spare")}));
  bound_session sum = summing(e);
  CHECK(take_all(sum, 12) > 0);
  CHECK(same(sum.fetch("next"), filled(three, 78)));
}

TEST_CASE("a device that is lost while steps are repeated costs another repetition", "[actors][B7][C11]") {
  engine e(engine_of(
      {reference("a", {.die_at = 6}), reference("b", {.die_at = 3}), reference("c", {.die_at = 4}), reference("d")}));
  bound_session sum = summing(e);
  CHECK(take_all(sum, 12) >= 6);
  CHECK(e.lost_devices().size() == 3);
}

TEST_CASE("a state on no device at all is repeated when there is one again", "[actors][B7][C11]") {
  engine e(engine_of({reference("d")}));
  bound_session sum = summing(e);
  take_all(sum, 5);
  lose(e, "d");
  for (int again = 0; again < 2; ++again)
    refuses([&] { step(sum); }, errc::device_lost, "the test took it");
  CHECK(sum.step() == 5);
  add_devices(e, {reference("later")});
  CHECK(take_all(sum, 7) == 5);
}

TEST_CASE("a fetch of lost state repeats the steps that made it", "[actors][B7][C11]") {
  engine e(engine_of({reference("d"), reference("spare")}));
  bound_session sum = summing(e);
  take_all(sum, 4);
  lose(e, "d");
  CHECK(same(sum.fetch("next"), filled(three, 10)));
  CHECK(sum.step() == 4);
  CHECK(take_all(sum, 6) == 4); // told by the next answer
}

TEST_CASE("steps that are too many to keep are forgotten at a checkpoint", "[actors][B7][C11]") {
  uint64_t most = 0;
  for (uint64_t taken = 40; taken < 45; ++taken) {
    engine e(engine_of({reference("d", {.die_at = taken}), reference("spare")}));
    bound_session sum = summing(e, {.heal_bytes = 100}); // a step is 12 bytes of x and 12 of y
    const uint64_t repeated = take_all(sum, 60);
    CHECK(repeated <= 8);
    most = std::max(most, repeated);
  }
  CHECK(most > 0);
}

TEST_CASE("steps that could not be kept are left to the caller, from the last checkpoint on", "[actors][B7][C11]") {
  engine e(engine_of({reference("d", {.die_at = 6}), reference("spare")}));
  bound_session sum = summing(e, {.heal_bytes = 8});
  uint64_t from = 0;
  while (from == 0 && sum.step() < 9)
    try {
      step(sum);
    } catch (const state_rolled_back& lost) {
      from = lost.repeat_from();
    }
  CHECK(from == 2); // the state was too large to keep, and is copied after the first step
  CHECK(sum.step() == 1);
  CHECK(take_all(sum, 9) == 0);
}

TEST_CASE("a step that is given much is not kept, and those after it are", "[actors][B7][C11]") {
  const shape large{300'000}; // more than 1 MiB
  engine e(engine_of({reference("d"), reference("spare")}));
  bound_session sum = e.load(summing_model(large)).bind({{"next", "state"}}, {.checkpoint = 1});
  sum.run({{"x", filled(large, 1)}, {"state", filled(large, 0)}});
  sum.run({{"x", filled(large, 1)}});
  sum.run({{"x", filled(large, 1)}});
  lose(e, "d");
  try {
    sum.run({{"x", filled(large, 1)}});
  } catch (const state_rolled_back& lost) { // unless the copy of the last step was there
    CHECK(lost.repeat_from() > 1);
  }
  while (sum.step() < 6)
    CHECK(sum.run({{"x", filled(large, 1)}}).stats.repeated_steps == 0);
  CHECK(same(sum.fetch("next"), filled(large, 6)));
}

TEST_CASE("a step that is given much goes on after the steps before it are repeated", "[actors][B7][C11]") {
  graph_builder b;
  const value_id x = b.input("x", {3}), state = b.input("state", {3}), much = b.input("much", {dim::symbol("n")});
  const value_id next = b.op("Add", {state, x}, {}, "next");
  b.g.outputs = {next, b.op("Neg", {next}, {}, "y"), b.op("Neg", {much}, {}, "z")};
  engine e(engine_of({reference("d"), reference("spare")}));
  bound_session sum = e.load(b.g).bind({{"next", "state"}});
  sum.run({{"x", filled(three, 1)}, {"much", filled({1}, 1)}, {"state", filled(three, 0)}});
  sum.run({{"x", filled(three, 2)}, {"much", filled({1}, 1)}});
  lose(e, "d");
  const run_result r = sum.run({{"x", filled(three, 3)}, {"much", filled({300'000}, 5)}}); // more than 1 MiB
  CHECK(r.stats.repeated_steps == 2);
  CHECK(is_answer(r, 3));
  CHECK(same(r.outputs.at("z"), filled({300'000}, -5)));
}

TEST_CASE("a copy that cannot be made for the session's own use is not the caller's error", "[actors][B7][C11]") {
  engine e(engine_of({reference("d", {.fail_fetches = true})}));
  bound_session sum = summing(e, {.heal_bytes = 50});
  CHECK(take_all(sum, 12) == 0);
}

TEST_CASE("a state that begins anew forgets the steps before", "[actors][B7][C11]") {
  engine e(engine_of({reference("d"), reference("spare")}));
  bound_session sum = summing(e);
  take_all(sum, 5);
  const bool on_device = GENERATE(false, true);
  if (on_device)
    sum.run({{"x", filled(three, 1)}}, {.device_inputs = {{"state", e.put(filled(three, 100), "d")}}});
  else
    sum.run({{"x", filled(three, 1)}, {"state", filled(three, 100)}});
  CHECK(sum.step() == 1);
  sum.run({{"x", filled(three, 2)}});
  lose(e, "d");
  const run_result r = sum.run({{"x", filled(three, 3)}});
  CHECK(r.stats.repeated_steps == 2);
  CHECK(same(r.outputs.at("y"), filled(three, -106)));
}

TEST_CASE("callers may change what they gave to a step that has ended", "[actors][B7][C11]") {
  engine e(engine_of({reference("d"), reference("spare")}));
  bound_session sum = summing(e);
  tensor x = filled(three, 1), state = filled(three, 0);
  sum.run({{"x", x}, {"state", state}});
  sum.run({{"x", x}});
  std::fill_n(x.mutable_data<float>(), 3, 50.f);
  std::fill_n(state.mutable_data<float>(), 3, 60.f);
  lose(e, "d");
  CHECK(same(sum.run({{"x", filled(three, 1)}}).outputs.at("y"), filled(three, -3)));
}

TEST_CASE("a model that answers otherwise when it repeats a step is rolled back, and says so", "[actors][B7][C11]") {
  graph_builder b;
  const value_id x = b.input("x", {3}), state = b.input("state", {3});
  const value_id noise = b.op("RandomUniformLike", {x});
  const value_id next = b.op("Add", {b.op("Add", {state, x}), noise}, {}, "next");
  b.g.outputs = {next, b.op("Neg", {next}, {}, "y")};
  engine e(engine_of({reference("d"), reference("spare")}));
  bound_session sum = e.load(b.g).bind({{"next", "state"}});
  for (int n = 0; n < 3; ++n)
    step(sum);
  lose(e, "d");
  try {
    step(sum);
    FAIL("the repetition was taken for the same");
  } catch (const state_rolled_back& lost) {
    CHECK(lost.repeat_from() == 1);
    CHECK_THAT(lost.what(), Contains("the session has repeated step 1, and an element of 'y' is"));
  }
  CHECK(sum.step() == 0);
  CHECK(same(sum.fetch("next"), filled(three, 0)));
  step(sum);
  CHECK(sum.step() == 1);
}

TEST_CASE("a run whose time is over while steps are repeated leaves the rest to the next", "[actors][B7][C11]") {
  engine e(engine_of({reference("d"), reference("slow", {.delay = 500ms})}));
  bound_session sum = summing(e);
  take_all(sum, 4);
  lose(e, "d");
  const auto start = std::chrono::steady_clock::now();
  refuses([&] { step(sum, {.timeout = 90ms}); }, errc::timeout, "");
  CHECK(std::chrono::steady_clock::now() - start < 1500ms); // four steps take 2 s
  CHECK(sum.step() == 4);
  const run_result r = step(sum);
  CHECK(is_answer(r, 5));
  CHECK(r.stats.repeated_steps == 4); // those of both runs
  std::stop_source stop;
  stop.request_stop();
  refuses([&] { step(sum, {.cancel = stop.get_token()}); }, errc::cancelled, "");
  CHECK(is_answer(step(sum), 6));
}

TEST_CASE("a decoder over hosts gives the same though workers are killed", "[actors][remote][B7][C11]") {
  const auto weights = std::filesystem::temp_directory_path() / fmt::format("troupe_heal_{}", getpid());
  const std::vector<std::string> lent{"--devices", "cpu", "--weights", weights.string()};
  auto one = std::make_unique<worker_process>(lent), two = std::make_unique<worker_process>(lent);
  engine e({.devices = {"cpu"},
            .hosts = {fmt::format("one=127.0.0.1:{}", one->port()), fmt::format("two=127.0.0.1:{}", two->port())},
            .credentials = {.insecure = true}});
  const auto checkpoint = GENERATE(as<uint64_t>(), 0, 4);
  const shape large{40'000}; // values are pulled in pieces
  bound_session sum = e.load(summing_model(large), {.pins = {{"*", "two/cpu"}, {"y", "one/cpu"}}, .fuse = false})
                          .bind({{"next", "state"}}, {.checkpoint = checkpoint});
  std::thread killer;
  uint64_t repeated = 0;
  constexpr uint64_t steps = 40;
  run_result last;
  while (sum.step() < steps) {
    if (sum.step() == 20 && !killer.joinable())
      killer = std::thread([&] { two->kill_now(); }); // while the next steps go on
    if (sum.step() == 25 && killer.joinable())
      killer.join();
    named_tensors inputs{{"x", filled(large, static_cast<float>(sum.step() + 1))}};
    if (sum.step() == 0)
      inputs["state"] = filled(large, 0);
    last = sum.run(inputs);
    repeated += last.stats.repeated_steps;
  }
  CHECK(same(last.outputs.at("y"), filled(large, -static_cast<float>(steps * (steps + 1) / 2))));
  CHECK(e.lost_devices() == std::vector<std::string>{"two/cpu"});
  CHECK((repeated > 0 || checkpoint > 0)); // the last checkpoint may be of the step before
  std::filesystem::remove_all(weights);
}

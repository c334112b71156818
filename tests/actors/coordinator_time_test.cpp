// The coordinator under CAF's testing scheduler and clock: deadlines, silent devices, cancellation, runs side by side.
#include "support/catch.hpp"
#include "support/deterministic_system.hpp"
#include "support/small_models.hpp"

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::actors;
using namespace troupe::test;

namespace {

const session_options alternating{.policy = placement_policy::round_robin, .fuse = false};

named_tensors ones(shape dims) {
  tensor t(dtype::float32, dims);
  std::fill_n(t.mutable_data<float>(), t.size(), 1.f);
  return {{"x", t}};
}

/// Returns the bytes that one run of a model with these dims needs on a scripted device.
int64_t needed_when_scripted(const graph& model, const shape& dims) {
  deterministic_session s(model, 1);
  auto result = s.run(ones(dims));
  s.settle();
  const int64_t needed = bytes_needed(*s.log(0).installs.at(0).bound->layout, 0);
  s.complete_all();
  result.get();
  return needed;
}

} // namespace

TEST_CASE("a device that has work and is silent counts as lost", "[actors][C11]") {
  deterministic_session s(chain(2), 2, alternating, 100ms);
  auto result = s.run(ones({2, 3}));
  s.settle();
  s.advance(60ms);
  s.complete(0); // d0 answered; d1 has work from now on
  for (int i = 0; i < 3; ++i)
    s.advance(25ms);
  CHECK_FALSE(is_ready(result));
  CHECK(s.log(0).chunks.empty());
  for (int i = 0; i < 6; ++i)
    s.advance(25ms);
  REQUIRE(s.log(0).chunks.size() == 1);
  s.complete_all();
  CHECK(result.get().stats.lost_devices == std::vector<std::string>{"d1"});
}

TEST_CASE("a silent device that another session lost does not keep a run for ever", "[actors][C11]") {
  deterministic_session s(chain(2), 2, alternating, 100ms);
  auto result = s.run(ones({2, 3}));
  s.settle();
  s.complete(0);
  s.lose_elsewhere(1);
  for (int i = 0; i < 8; ++i)
    s.advance(25ms);
  REQUIRE(s.log(0).chunks.size() == 1);
  s.complete_all();
  CHECK(result.get().stats.lost_devices == std::vector<std::string>{"d1"});
}

TEST_CASE("a device that is slow but answers is not lost", "[actors][C11]") {
  deterministic_session s(chain(20), 2, alternating, 100ms);
  auto result = s.run(ones({2, 3}));
  s.settle();
  for (size_t step = 0; step < 20; ++step) {
    s.advance(70ms);
    REQUIRE_FALSE(s.log(step % 2).chunks.empty());
    s.complete(step % 2);
  }
  CHECK(result.get().stats.lost_devices.empty());
}

TEST_CASE("an install that is answered after its plan was given up leaves no device busy", "[actors][C11]") {
  deterministic_session s(chain(10), 3, alternating, 100ms);
  for (size_t d = 0; d < 3; ++d)
    s.log(d).install_delay = 10ms;
  auto result = s.run(ones({2, 3}));
  s.settle();
  s.kill(1);     // the coordinator hears of the loss before it hears that the others have installed
  s.complete(0); // the chunk of the old attempt
  for (int step = 0; step < 10; ++step) {
    const size_t device = s.log(0).chunks.empty() ? 2 : 0;
    s.advance(45ms); // the other one is idle, not silent
    s.advance(45ms);
    REQUIRE_FALSE(s.log(device).chunks.empty());
    s.complete(device);
  }
  CHECK(result.get().stats.lost_devices == std::vector<std::string>{"d1"});
}

TEST_CASE("a run ends at its deadline", "[actors][C11]") {
  deterministic_session s(chain(1), 1);
  auto late = s.run(ones({2, 3}), {.timeout = 50ms});
  auto patient = s.run(ones({2, 3}), {.timeout = 500ms});
  s.settle();
  s.advance(49ms);
  CHECK_FALSE(is_ready(late));
  s.advance(1ms);
  CHECK(error_of(late).code() == errc::timeout);
  CHECK_FALSE(is_ready(patient));
  s.complete_all();
  CHECK(patient.get().outputs.size() == 1);
}

TEST_CASE("a cancelled run ends and its devices are told to stop", "[actors]") {
  deterministic_session s(chain(1), 1);
  auto result = s.run(ones({2, 3}));
  s.settle();
  caf::anon_send(s.coordinator(), cancel_run{s.last_ticket()});
  s.settle();
  CHECK(error_of(result).code() == errc::cancelled);
  CHECK(s.log(0).chunks.at(0).stop->load());
}

TEST_CASE("runs side by side have arena slots of their own, which are used again", "[actors][A9][A11]") {
  deterministic_session s(chain(1), 1);
  auto a = s.run(ones({2, 3}));
  auto b = s.run(ones({2, 3}));
  s.settle();
  REQUIRE(s.log(0).chunks.size() == 2);
  CHECK(s.log(0).chunks[0].slot != s.log(0).chunks[1].slot);
  CHECK(s.log(0).chunks[0].execution != s.log(0).chunks[1].execution);
  const uint32_t first_slot = s.log(0).chunks[0].slot;
  s.complete(0);
  CHECK(is_ready(a));
  CHECK_FALSE(is_ready(b));
  auto c = s.run(ones({2, 3}));
  s.settle();
  CHECK(s.log(0).chunks.back().slot == first_slot);
  CHECK(s.log(0).installs.size() == 1);
  s.complete_all();
  CHECK(is_ready(b));
  CHECK(is_ready(c));
}

TEST_CASE("the slot of a failed run is free only when its last chunk is answered", "[actors][A11]") {
  deterministic_session s(chain(1), 1);
  auto a = s.run(ones({2, 3}), {.timeout = 10ms});
  s.settle();
  s.advance(10ms);
  CHECK(error_of(a).code() == errc::timeout);
  const uint32_t busy = s.log(0).chunks.at(0).slot;
  auto b = s.run(ones({2, 3}));
  s.settle();
  CHECK(s.log(0).chunks.at(1).slot != busy);
  s.complete_all();
  CHECK(b.get().outputs.size() == 1);
}

TEST_CASE("new dims are a new bound plan, old ones are used again", "[actors][A9][A10]") {
  deterministic_session s(chain(1, {dim::symbol("batch"), 3}), 1);
  for (const int64_t batch : {2, 5, 2}) {
    auto result = s.run(ones({batch, 3}));
    s.settle();
    s.complete_all();
    CHECK(result.get().outputs.begin()->second.dims() == shape{batch, 3});
  }
  CHECK(s.log(0).installs.size() == 2);
}

TEST_CASE("bound plans that leave the cache are retired", "[actors][A10]") {
  deterministic_session s(chain(1, {dim::symbol("batch"), 3}), 1);
  for (int64_t i = 1; i <= 70; ++i) {
    auto result = s.run(ones({i * 37 % 71, 3})); // in no order that could be foreseen
    s.settle();
    s.complete_all();
    result.get();
  }
  CHECK(s.log(0).installs.size() == 70);
  CHECK(s.log(0).retired.size() == 6);
}

TEST_CASE("a session that is closed ends when its last run has ended", "[actors]") {
  deterministic_session s(chain(1), 1);
  auto result = s.run(ones({2, 3}));
  caf::anon_send(s.coordinator(), close_session{});
  s.settle();
  CHECK_FALSE(is_ready(result));
  s.complete_all();
  CHECK(result.get().outputs.size() == 1);
  CHECK(s.log(0).retired.size() == 1);
  auto too_late = s.run(ones({2, 3}));
  s.settle();
  CHECK(error_of(too_late).code() == errc::cancelled);
}

TEST_CASE("a run waits for memory until another ends, its deadline or its cancellation", "[actors][B2][C11]") {
  const int64_t needed = needed_when_scripted(chain(2), {2, 3});
  deterministic_session s(chain(2), 1, {}, 0ms, completion_mode::device, needed + needed / 2);
  const auto run = [&](const run_options& options = {}) {
    auto result = s.run(ones({2, 3}), options);
    s.settle();
    return result;
  };
  auto first = run();
  REQUIRE(s.chunks_waiting() == 1);
  auto late = run({.timeout = 50ms});
  auto cancelled = run();
  caf::anon_send(s.coordinator(), cancel_run{s.last_ticket()});
  auto patient = run();
  auto last = run();
  CHECK(s.chunks_waiting() == 1);
  CHECK(error_of(cancelled).code() == errc::cancelled);
  s.advance(50ms);
  CHECK(error_of(late).code() == errc::timeout);
  CHECK_FALSE(is_ready(patient));
  s.complete(0);
  s.settle();
  CHECK(first.get().outputs.size() == 1);
  REQUIRE(s.chunks_waiting() == 1);
  s.complete(0);
  s.settle();
  CHECK(patient.get().outputs.size() == 1); // in the order in which they came
  CHECK_FALSE(is_ready(last));
  s.complete_all();
  CHECK(last.get().outputs.size() == 1);
  CHECK(s.log(0).installs.size() == 1);
}

TEST_CASE("small runs do not pass a large one that waits for memory", "[actors][B2]") {
  const graph model = chain(2, {dim::symbol("n"), 1024});
  const int64_t needed = needed_when_scripted(model, {2, 1024});
  deterministic_session s(model, 1, {}, 0ms, completion_mode::device, 2 * needed + needed / 2);
  std::vector<std::future<run_result>> runs;
  for (const int64_t rows : {2, 4, 2}) {
    runs.push_back(s.run(ones({rows, 1024})));
    s.settle();
  }
  for (size_t i = 0; i < runs.size(); ++i) {
    INFO("run " << i);
    REQUIRE(s.chunks_waiting() == 1); // though two small ones would fit
    s.complete(0);
    s.settle();
    REQUIRE(is_ready(runs[i]));
    CHECK(runs[i].get().outputs.size() == 1);
  }
}

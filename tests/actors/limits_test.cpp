// Limits hold over all that a session does at the same time, and over what it keeps for later runs.
#include "actors/engine.hpp"
#include "support/catch.hpp"
#include "support/deterministic_system.hpp"
#include "support/small_models.hpp"

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::actors;
using namespace troupe::test;

namespace {

named_tensors ones(int64_t rows) {
  return {{"x", floats({rows, 1024}, std::vector<float>(static_cast<size_t>(rows) * 1024, 1))}};
}

graph rows_chain() {
  return chain(6, {dim::symbol("n"), 1024});
}

/// Returns the bytes that one run with `rows` rows needs.
int64_t needed_for(int64_t rows) {
  engine e({.devices = {"cpu"}});
  return bytes_needed(*e.load(rows_chain(), {.fuse = false}).bind_for(ones(rows))->layout, 0);
}

/// Returns the bytes that one run on a scripted device needs.
int64_t needed_when_scripted() {
  deterministic_session s(chain(2), 1);
  auto result = s.run({{"x", floats({2, 3}, {1, 2, 3, 4, 5, 6})}});
  s.settle();
  const int64_t needed = bytes_needed(*s.log(0).installs.at(0).bound->layout, 0);
  s.complete_all();
  result.get();
  return needed;
}

} // namespace

TEST_CASE("runs side by side keep to a device's limit", "[actors][B2][A11]") {
  const int64_t needed = needed_for(64);
  engine e({.devices = {"cpu"}, .memory = {{"cpu", needed + needed / 2}}});
  const session s = e.load(rows_chain(), {.fuse = false});
  std::vector<std::future<run_result>> runs;
  for (int i = 0; i < 16; ++i)
    runs.push_back(s.run_async(ones(64)));
  for (auto& run : runs)
    CHECK(run.get().outputs.begin()->second.dims() == shape{64, 1024});
  CHECK(e.stats().at(0).arena_bytes > 0);
  CHECK(e.stats().at(0).arena_bytes <= needed);
  CHECK(s.plan_for(ones(64))->remarks.empty());
}

TEST_CASE("plans that are kept for other dims make room", "[actors][B2][D1]") {
  const int64_t needed = needed_for(128);
  engine e({.devices = {"cpu"}, .memory = {{"cpu", needed + needed / 2}}});
  const session s = e.load(rows_chain(), {.fuse = false});
  int64_t most = 0; // plans at a time
  for (const int64_t rows : {128, 60, 128, 90, 30, 128}) {
    CHECK(s.run(ones(rows)).outputs.begin()->second.dims() == shape{rows, 1024});
    CHECK(s.plan_for(ones(rows))->remarks.empty());
    most = std::max(most, e.stats().at(0).installed_plans);
  }
  CHECK(most == 2);
}

TEST_CASE("a run waits for memory until another ends, its deadline or its cancellation", "[actors][B2][C11]") {
  const int64_t needed = needed_when_scripted();
  deterministic_session s(chain(2), 1, {}, 0ms, completion_mode::device, needed + needed / 2);
  const auto run = [&](const run_options& options = {}) {
    auto result = s.run({{"x", floats({2, 3}, {1, 2, 3, 4, 5, 6})}}, options);
    s.settle();
    return result;
  };
  auto first = run();
  REQUIRE(s.chunks_waiting() == 1);
  auto late = run({.timeout = 50ms});
  auto cancelled = run();
  caf::anon_send(s.coordinator(), cancel_run{s.last_ticket()});
  auto patient = run();
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
  CHECK(patient.get().outputs.size() == 1);
  CHECK(s.log(0).installs.size() == 1);
}

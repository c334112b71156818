// Time limits that callers give: none, endless, negative; and their effect on devices that are busy.
#include "actors/silence_watch.hpp"
#include "support/bound_values.hpp"
#include "support/deterministic_system.hpp"

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::actors;
using namespace troupe::test;

namespace {

constexpr auto endless = std::chrono::milliseconds::max();

const named_tensors ones{{"x", filled({2, 3}, 1.f)}};

/// x · x, in whole numbers: no fast kernel, a processor is busy with it.
graph integer_product(int64_t n) {
  graph_builder b;
  const value_id x = b.input("x", {n, n}, dtype::int32);
  b.output(b.op("MatMul", {x, x}, {}, "y"));
  return b.g;
}

named_tensors zeros(int64_t n) {
  tensor t(dtype::int32, {n, n});
  std::fill_n(t.mutable_data<int32_t>(), t.size(), 0);
  return {{"x", t}};
}

} // namespace

TEST_CASE("a run with an endless limit does not end early", "[actors][C11]") {
  for (const auto limit :
       {endless, endless - 1ms, std::chrono::milliseconds(std::chrono::hours(24 * 365 * 200)), 0ms}) {
    deterministic_session s(chain(1), 1);
    auto result = s.run(ones, {.timeout = limit});
    s.settle();
    s.advance(1h);
    CHECK_FALSE(is_ready(result));
    s.complete_all();
    REQUIRE(is_ready(result));
    CHECK(result.get().outputs.size() == 1);
  }
}

TEST_CASE("negative limits are refused", "[actors][E4]") {
  engine e({.devices = {"null"}});
  const session s = e.load(chain(1));
  refuses([&] { s.run(ones, {.timeout = -1ms}); }, errc::invalid_argument, "run_options::timeout");
  refuses([&] { engine({.devices = {"null"}, .device_timeout = -1ms}); }, errc::invalid_argument,
          "engine_options::device_timeout");
}

TEST_CASE("an engine whose devices may be silent for ever runs, puts, fetches and closes", "[actors][C11]") {
  for (const auto limit : {endless, 0ms}) {
    engine e(engine_of({reference("ref")}, limit));
    CHECK(e.load(chain(1)).run(ones).outputs.size() == 1);
    CHECK(same(e.fetch(e.put(filled({3}, 7.f), "ref")), filled({3}, 7.f)));
  }
}

TEST_CASE("without a limit a device is never lost because it is silent", "[actors][C11]") {
  deterministic_session s(chain(1), 1, {}, 0ms);
  auto result = s.run(ones);
  s.settle();
  for (int hour = 0; hour < 100; ++hour)
    s.advance(1h);
  CHECK_FALSE(is_ready(result));
  s.complete_all();
  CHECK(result.get().stats.lost_devices.empty());
}

TEST_CASE("a CPU that computes for longer than a device may be silent is alive", "[actors][C11]") {
  const auto limit = 100ms;
  double busy_ms = 0;
  for (int64_t n = 256; busy_ms < 4 * limit.count(); n *= 2) { // until one node takes long enough
    REQUIRE(n < 100'000);
    engine e({.devices = {"cpu"}, .device_timeout = limit});
    const run_result result = e.load(integer_product(n)).run(zeros(n));
    CHECK(result.stats.lost_devices.empty());
    busy_ms = result.stats.busy_ms.at(0).second;
    const session again = e.load(chain(1)); // other sessions keep their device, too
    CHECK(again.run(ones).outputs.size() == 1);
  }
}

TEST_CASE("a device is silent when it has work and shows no progress, if it can hang at all", "[actors][C11]") {
  device_health health;
  const auto at = [start = silence_watch::clock::time_point{} + 1h](auto time) { return start + time; };
  silence_watch watch;
  CHECK_FALSE(watch.is_silent(health, false, at(0ms), 100ms));
  CHECK_FALSE(watch.is_silent(health, true, at(200ms), 100ms)); // work has come
  CHECK_FALSE(watch.is_silent(health, true, at(299ms), 100ms));
  ++health.progress;
  CHECK_FALSE(watch.is_silent(health, true, at(350ms), 100ms));
  CHECK_FALSE(watch.is_silent(health, true, at(449ms), 100ms));
  CHECK(watch.is_silent(health, true, at(450ms), 100ms));
  CHECK_FALSE(watch.is_silent(health, true, at(451ms), 0ms));
  CHECK_FALSE(watch.is_silent(health, false, at(452ms), 100ms));
  CHECK_FALSE(watch.is_silent(health, true, at(900ms), 100ms));
  health.may_hang = false;
  CHECK_FALSE(watch.is_silent(health, true, at(24h), 100ms));
}

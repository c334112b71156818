// All that `session::prepare` makes is there when a run comes, and no run has been computed for it.
#include "actors/row_models.hpp"
#include "support/small_models.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

uint64_t chunks_of(const engine& e) {
  uint64_t all = 0;
  for (const device_stats& d : e.stats())
    all += d.chunks;
  return all;
}

} // namespace

TEST_CASE("a session is prepared without a run", "[actors][A11]") {
  engine e = references(2);
  const session s = e.load(rows_apart());
  s.prepare({{"x", tensor(dtype::float32, {5, 4})}});
  CHECK(chunks_of(e) == 0);
  CHECK(s.stats().runs == 0);
  const uint64_t bound = s.stats().bound_plans.misses;
  s.prepare({{"x", tensor(dtype::float32, {5, 4})}}); // it is
  const run_result first = s.run({{"x", random_tensor({5, 4}, 1)}});
  CHECK(first.stats.plan_cached);
  CHECK(s.stats().bound_plans.misses == bound);
  CHECK_FALSE(s.run({{"x", random_tensor({6, 4}, 1)}}).stats.plan_cached);
}

TEST_CASE("a preparation is refused as a run is", "[actors][B7]") {
  engine e = references(1);
  const session s = e.load(rows_apart());
  CHECK(thrown_by([&] { s.prepare({}); }).code() == errc::invalid_input);
  CHECK(thrown_by([&] { s.prepare({{"x", tensor(dtype::float32, {5, 3})}}); }).code() == errc::invalid_input);
  std::stop_source stop;
  stop.request_stop();
  const named_tensors good{{"x", tensor(dtype::float32, {5, 4})}};
  CHECK(thrown_by([&] { s.prepare(good, {.cancel = stop.get_token()}); }).code() == errc::cancelled);
  CHECK(thrown_by([&] { s.prepare(good, {.timeout = -1ms}); }).code() == errc::invalid_argument);
}

TEST_CASE("replicas are prepared for the pieces that they get", "[actors][strategy][C1][C4]") {
  engine e = references(2);
  const strategy how = GENERATE(strategy::data_parallel, strategy::work_stealing, strategy::pipeline, strategy::none,
                                strategy::automatic);
  const session s = e.load(rows_apart(), {.strategy = how});
  s.prepare({{"x", tensor(dtype::float32, {64, 4})}});
  CHECK(chunks_of(e) == 0);
  const uint64_t bound = s.stats().bound_plans.misses;
  s.run({{"x", random_tensor({64, 4}, 1)}});
  if (how == strategy::work_stealing) // how many each takes also depends on its speed
    CHECK(s.stats().bound_plans.misses <= bound + 3);
  else
    CHECK(s.stats().bound_plans.misses == bound);
}

TEST_CASE("a preparation outlives the loss of a device", "[actors][C11]") {
  engine e = references(2);
  const session s = e.load(rows_apart(), {.policy = placement_policy::round_robin, .fuse = false});
  lose_devices(
      e, [](const device_info& d) { return d.name == "ref1"; }, "the test took it");
  s.prepare({{"x", tensor(dtype::float32, {5, 4})}});
  CHECK(s.run({{"x", random_tensor({5, 4}, 1)}}).stats.plan_cached);
}

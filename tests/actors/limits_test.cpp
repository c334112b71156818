// Limits hold over all runs of a session at the same time, and over the plans that it keeps for later runs.
#include "actors/engine_access.hpp"
#include "support/catch.hpp"
#include "support/small_models.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

named_tensors ones(int64_t rows) {
  return {{"x", floats({rows, 1024}, std::vector<float>(static_cast<size_t>(rows) * 1024, 1))}};
}

graph rows_chain() {
  return chain(6, {dim::symbol("n"), 1024});
}

} // namespace

TEST_CASE("runs side by side keep to a device's limit", "[actors][B2][A11]") {
  const int64_t needed = bytes_for_run(rows_chain(), ones(64), "cpu");
  engine e({.devices = {"cpu"}, .memory = {{"cpu", needed + needed / 2}}});
  const session s = e.load(rows_chain(), {.fuse = false});
  std::vector<std::future<run_result>> runs;
  for (int i = 0; i < 100; ++i)
    runs.push_back(s.run_async(ones(64)));
  for (auto& run : runs)
    CHECK(run.get().outputs.begin()->second.dims() == shape{64, 1024});
  CHECK(e.stats().at(0).arena_bytes > 0);
  CHECK(e.stats().at(0).arena_bytes <= needed);
  CHECK(s.stats().plans.hits < 400); // a run that ends does not wake all that wait
  CHECK(plan_of(s, ones(64))->remarks.empty());
}

TEST_CASE("plans that are kept for other dims make room", "[actors][B2][D1]") {
  const int64_t needed = bytes_for_run(rows_chain(), ones(128), "cpu");
  engine e({.devices = {"cpu"}, .memory = {{"cpu", needed + needed / 2}}});
  const session s = e.load(rows_chain(), {.fuse = false});
  int64_t most = 0; // plans at a time
  for (const int64_t rows : {128, 60, 128, 90, 30, 128}) {
    CHECK(s.run(ones(rows)).outputs.begin()->second.dims() == shape{rows, 1024});
    CHECK(plan_of(s, ones(rows))->remarks.empty());
    most = std::max(most, e.stats().at(0).installed_plans);
  }
  CHECK(most == 2);
}

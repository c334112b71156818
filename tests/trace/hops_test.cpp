#include "trace/hops.hpp"

#include "support/catch.hpp"

using namespace troupe;

TEST_CASE("a traced run is taken apart into the hops of its way", "[trace]") {
  run_trace trace;
  trace.begin_ns = 1'000'000;
  trace.end_ns = 9'000'000;
  CHECK_FALSE(hops_of(trace));
  trace.chunks = {{.chunk = 0, .sent_ns = 1'500'000, .ended_ns = 6'000'000, .timings = {}},
                  {.chunk = 1, .sent_ns = 3'000'000, .ended_ns = 8'000'000, .timings = {}}};
  CHECK_FALSE(hops_of(trace));
  trace.chunks[0].timings = {{.id = 0, .begin_ns = 2'500'000, .end_ns = 4'000'000, .kernel = "a"}};
  trace.chunks[1].timings = {{.id = 1, .begin_ns = 4'000'000, .end_ns = 7'750'000, .kernel = "b"}};
  const auto hops = hops_of(trace);
  REQUIRE(hops);
  CHECK(hops->to_device == Approx(0.5));
  CHECK(hops->to_work == Approx(1));
  CHECK(hops->work == Approx(5.25));
  CHECK(hops->to_session == Approx(0.25));
  CHECK(hops->to_caller == Approx(1));
}

TEST_CASE("hops of several runs are told by their medians", "[trace]") {
  const run_hops runs[] = {{1, 2, 3, 4, 5}, {2, 2, 9, 4, 6}, {3, 2, 4, 4, 70}};
  const run_hops told = median_hops(runs);
  CHECK(told.to_device == 2);
  CHECK(told.to_work == 2);
  CHECK(told.work == 4);
  CHECK(told.to_session == 4);
  CHECK(told.to_caller == 6);
}

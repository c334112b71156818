// The null device and the fault device, called as a device actor calls them.
#include "device/null_device.hpp"
#include "ops/registry.hpp"
#include "support/catch.hpp"
#include "support/chunk_works.hpp"
#include "support/fault_device.hpp"
#include "support/small_models.hpp"

#include <future>

using namespace troupe;
using namespace troupe::test;

namespace {

bound_plan_ptr bound_chain(const device_info& info) {
  return bind_segment(make_plan(inferred_program(chain(2)), {info}, {}), 0, {});
}

std::unique_ptr<device> null_named(const std::string& name) {
  return std::make_unique<null_device>(
      device_info{.name = name, .kind = device_kind::null, .memory_bytes = int64_t{1} << 40});
}

chunk_work work_of(const bound_plan_ptr& bound) {
  return test::work_of(*bound, 0, {floats({2, 3}, {1, 2, 3, 4, 5, 6})});
}

} // namespace

TEST_CASE("the null device completes at once with zeros", "[device]") {
  const auto d = null_named("null");
  const bound_plan_ptr bound = bound_chain(d->info());
  chunk_result seen;
  const auto keep = [&](chunk_result r) { seen = std::move(r); };
  d->submit(work_of(bound), keep);
  CHECK_FALSE(seen.ok()); // not installed
  d->install(bound, 0);
  const chunk_work work = work_of(bound);
  d->submit(work, keep);
  REQUIRE(seen.ok());
  REQUIRE(work.downloads.size() == 1);
  CHECK(work.downloads[0]->dims() == shape{2, 3});
  for (float f : work.downloads[0]->host().values<float>())
    CHECK(f == 0);
  CHECK(d->stats().chunks == 1);
  CHECK(d->stats().installed_plans == 1);
  d->retire(bound->id);
  CHECK(d->stats().installed_plans == 0);
}

TEST_CASE("the fault device fails the chunk that its script names, and lives on", "[device]") {
  fault_device d(null_named("null"), {.fail_at = 1});
  const bound_plan_ptr bound = bound_chain(d.info());
  d.install(bound, 0);
  std::vector<bool> ok, filled;
  for (int i = 0; i < 3; ++i) {
    const chunk_work work = work_of(bound);
    d.submit(work, [&](chunk_result r) { ok.push_back(r.ok()); });
    filled.push_back(work.downloads.at(0)->filled());
  }
  CHECK(ok == std::vector<bool>{true, false, true});
  CHECK(filled == ok);
}

TEST_CASE("the fault device dies for good and stalls for good", "[device]") {
  const bound_plan_ptr bound = bound_chain(null_named("null")->info());
  fault_device dying(null_named("null"), {.die_at = 1});
  dying.install(bound, 0);
  std::vector<errc> codes;
  for (int i = 0; i < 3; ++i)
    dying.submit(work_of(bound), [&](chunk_result r) { codes.push_back(r.ok() ? errc::cancelled : r.code); });
  CHECK(codes == std::vector{errc::cancelled, errc::device_lost, errc::device_lost});
  CHECK_THROWS_AS(dying.install(bound, 0), error);

  fault_device stalling(null_named("null"), {.stall_at = 1});
  stalling.install(bound, 0);
  int answers = 0;
  for (int i = 0; i < 3; ++i)
    stalling.submit(work_of(bound), [&](chunk_result) { ++answers; });
  CHECK(answers == 1);
}

TEST_CASE("the fault device delays completions on another thread, in order", "[device]") {
  std::vector<std::thread::id> threads;
  std::vector<int> order;
  {
    fault_device d(null_named("null"), {.delay = std::chrono::milliseconds(2)});
    const bound_plan_ptr bound = bound_chain(d.info());
    d.install(bound, 0);
    for (int i = 0; i < 3; ++i)
      d.submit(work_of(bound), [&, i](chunk_result) {
        order.push_back(i);
        threads.push_back(std::this_thread::get_id());
      });
  } // waits for delayed chunks
  CHECK(order == std::vector{0, 1, 2});
  CHECK(threads.at(0) != std::this_thread::get_id());
}

// The device actor under CAF's testing scheduler, over devices that run nothing or fail on order.
#include "actors/device_actor.hpp"
#include "cpu/cpu_device.hpp"
#include "device/null_device.hpp"
#include "ops/registry.hpp"
#include "support/catch.hpp"
#include "support/chunk_works.hpp"
#include "support/fault_device.hpp"
#include "support/small_models.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::test;

namespace {

struct answers {
  std::vector<plan_installed> installs;
  std::vector<chunk_begun> begun;
  std::vector<chunk_ended> chunks;
};

/// Takes a coordinator's place: it passes on what the test tells it to, and writes down the answers.
using relay_ref =
    completion_sink::extend<caf::reacts_to<chunk_begun>, caf::reacts_to<install_plan>, caf::reacts_to<run_chunks>>;

relay_ref::behavior_type relay(relay_ref::pointer self, device_ref device, answers* log) {
  return {
      [=](const plan_installed& m) { log->installs.push_back(m); },
      [=](const chunk_begun& m) { log->begun.push_back(m); },
      [=](const chunk_ended& m) { log->chunks.push_back(m); },
      [](const tensor_fetched&) {},
      [=](const install_plan& m) { self->send(device, m); },
      [=](const run_chunks& m) { self->send(device, m); },
  };
}

struct fixture {
  explicit fixture(fault_script script) {
    config.set("scheduler.policy", caf::atom("testing"));
    system = std::make_unique<caf::actor_system>(config);
    const device_info info{.name = "d", .kind = device_kind::null, .memory_bytes = int64_t{1} << 40};
    device = system->spawn(
        device_actor, [=] { return std::make_unique<fault_device>(std::make_unique<null_device>(info), script); },
        health);
    coordinator = system->spawn(relay, device, &log);
    caf::anon_send(device, open_device{});
    bound = bind_segment(make_plan(inferred_program(chain(2)), {info}, {}), 0, {});
    caf::anon_send(coordinator, install_plan{bound, 0});
    settle();
  }
  ~fixture() {
    caf::anon_send_exit(coordinator, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(device, caf::exit_reason::user_shutdown);
    settle();
  }
  void settle() {
    while (dynamic_cast<caf::scheduler::test_coordinator&>(system->scheduler()).try_run_once()) {
    }
  }
  void send(std::vector<execution_id> executions, std::shared_ptr<std::atomic<bool>> stop = nullptr) {
    run_chunks message;
    for (execution_id e : executions) {
      chunk_work& work = message.works.emplace_back(work_of(*bound, 0, {floats({2, 3}, {1, 2, 3, 4, 5, 6})}));
      work.execution = e;
      work.stop = stop;
      made.push_back(work.downloads.at(0));
    }
    caf::anon_send(coordinator, message);
    settle();
  }
  bool ended_well(size_t i) const { return log.chunks.at(i).result.ok(); }

  caf::actor_system_config config;
  std::unique_ptr<caf::actor_system> system;
  std::shared_ptr<device_health> health = std::make_shared<device_health>();
  device_ref device;
  relay_ref coordinator;
  answers log;
  std::vector<value_ref> made; // by chunk
  bound_plan_ptr bound;
};

template <class List>
concept dereferenced = requires(List list) {
  *std::forward<List>(list);
};
// A loop over what a temporary list refers to would go on without the list.
static_assert(dereferenced<const device_list&> && !dereferenced<device_list>);

} // namespace

TEST_CASE("a device answers every chunk once, in order, and shows progress", "[actors]") {
  fixture f({});
  REQUIRE(f.log.installs.size() == 1);
  CHECK_FALSE(f.log.installs[0].why.failed());
  const uint64_t before = f.health->progress;
  f.send({1, 2, 1});
  REQUIRE(f.log.chunks.size() == 3);
  CHECK(f.log.chunks[1].execution == 2);
  CHECK(f.made.at(2)->dims() == shape{2, 3});
  CHECK(f.health->progress == before + 3);
}

TEST_CASE("a device tells of chunks whose values it knew when it took them", "[actors][B7]") {
  fixture f({.knows_from = 2});
  f.send({1, 2, 3, 4});
  REQUIRE(f.log.begun.size() == 2);
  CHECK(f.log.begun[0].execution == 3);
  CHECK(f.log.begun[1].execution == 4);
  CHECK(f.log.begun[1].made == std::vector<uint32_t>{0});
  CHECK(f.log.chunks.size() == 4);
}

TEST_CASE("whether a device may hang is known when it is open", "[actors][C11]") {
  CHECK(fixture({}).health->may_hang.load());
  caf::actor_system_config config;
  config.set("scheduler.policy", caf::atom("testing"));
  caf::actor_system system(config);
  const auto health = std::make_shared<device_health>();
  const device_ref cpu = system.spawn(
      device_actor, [] { return make_cpu_device("cpu"); }, health);
  caf::anon_send(cpu, open_device{});
  caf::anon_send_exit(cpu, caf::exit_reason::user_shutdown);
  while (dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler()).try_run_once()) {
  }
  CHECK_FALSE(health->may_hang.load());
}

TEST_CASE("after a failed chunk a device drops its execution's later chunks, and no others", "[actors][C11][A13]") {
  fixture f({.fail_at = 0});
  f.send({1, 1, 2, 1});
  REQUIRE(f.log.chunks.size() == 4);
  CHECK(f.log.chunks[0].result.code == errc::device_failed);
  CHECK(f.log.chunks[1].result.code == errc::cancelled);
  CHECK(f.ended_well(2));
  CHECK(f.log.chunks[3].result.code == errc::cancelled);
  caf::anon_send(f.device, end_execution{1});
  f.send({1}); // forgotten
  CHECK(f.ended_well(4));
}

TEST_CASE("a device drops chunks of an execution that is stopped", "[actors]") {
  fixture f({});
  const auto stop = std::make_shared<std::atomic<bool>>(true);
  f.send({1}, stop);
  REQUIRE(f.log.chunks.size() == 1);
  CHECK(f.log.chunks[0].result.code == errc::cancelled);
}

TEST_CASE("a device drops chunks of a plan that it has not, and lives on", "[actors][C11]") {
  fixture f({});
  caf::anon_send(f.device, retire_plan{f.bound->id});
  f.send({1});
  REQUIRE(f.log.chunks.size() == 1);
  CHECK(f.log.chunks[0].result.code == errc::cancelled);
  CHECK(f.log.chunks[0].result.message.find("not installed") != std::string::npos);
  caf::anon_send(f.coordinator, install_plan{f.bound, 0});
  f.send({2});
  CHECK(f.ended_well(1));
}

TEST_CASE("a device that is lost says so and takes its actor with it", "[actors][C11]") {
  fixture f({.die_at = 1});
  f.send({1, 2});
  REQUIRE(f.log.chunks.size() == 2);
  CHECK(f.ended_well(0));
  CHECK(f.log.chunks[1].result.code == errc::device_lost);
  f.send({3});
  CHECK(f.log.chunks.size() == 2);
}

TEST_CASE("a device that cannot install answers with the reason", "[actors][C11]") {
  fixture f({.die_at_install = true});
  REQUIRE(f.log.installs.size() == 1);
  CHECK(f.log.installs[0].why.code == errc::device_lost);
  CHECK(f.log.installs[0].why.message.find("died on order") != std::string::npos);
}

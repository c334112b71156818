// Hosts that leave in order, as callers of an engine see them; workers are processes where a test says so.
#include "actors/engine_access.hpp"
#include "actors/worker.hpp"
#include "support/alternating_runs.hpp"
#include "support/catch.hpp"
#include "support/fault_device.hpp"
#include "support/reference_device.hpp"
#include "support/worker_process.hpp"

#include <thread>

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

/// Waits for another thread's work.
template <class Condition>
void await(Condition&& holds) {
  for (const auto end = std::chrono::steady_clock::now() + 20s; !holds(); std::this_thread::sleep_for(2ms))
    REQUIRE(std::chrono::steady_clock::now() < end);
}

engine open_engine(names devices, const worker_process& one) {
  return engine({.devices = std::move(devices),
                 .hosts = {fmt::format("one=127.0.0.1:{}", one.port())},
                 .credentials = {.insecure = true}});
}

bool is_same(const run_result& a, const run_result& b) {
  return std::ranges::equal(a.outputs.begin()->second.values<float>(), b.outputs.begin()->second.values<float>());
}

} // namespace

TEST_CASE("a device that leaves ends the work that it has, and is let go", "[actors][D5]") {
  const auto latch = std::make_shared<hang_latch>();
  engine e = make_engine({.devices = {}}, {.custom_devices = {[] { return std::make_unique<reference_device>("a"); },
                                                              [latch] {
                                                                return std::make_unique<fault_device>(
                                                                    std::make_unique<reference_device>("b"),
                                                                    fault_script{.hang_at = 1, .latch = latch});
                                                              }}});
  const session busy = e.load(chain(2), alternating), idle = e.load(chain(4), alternating);
  REQUIRE(devices_of(busy.run(six)) == names{"a", "b"}); // its plan is there, so the next run begins at once
  auto in_flight = busy.run_async(six);
  auto need = std::make_shared<const int>(0);
  const std::weak_ptr<const void> needed = need;
  let_leave(e, called("b"), "its host leaves", std::exchange(need, nullptr));
  CHECK(devices_of(idle.run(six)) == names{"a"});
  const session late = e.load(chain(4), alternating);
  CHECK(devices_of(late.run(six)) == names{"a"});
  CHECK_FALSE(needed.expired());
  latch->release();
  const run_result r = in_flight.get();
  CHECK(devices_of(r) == names{"a", "b"});
  CHECK(r.stats.lost_devices.empty());
  await([&] { return needed.expired(); });
  CHECK(devices_of(busy.run(six)) == names{"a"});
  CHECK(e.lost_devices().empty());
}

TEST_CASE("a worker process that is told to end does so when its runs have ended", "[actors][remote][D5]") {
  auto one = std::make_unique<worker_process>(names{"--devices", "cpu", "--drain", "600"});
  engine e = open_engine({"cpu"}, *one);
  const session s = e.load(chain(9, {20, 30}), alternating);
  tensor x(dtype::float32, {20, 30});
  std::fill_n(x.mutable_data<float>(), x.size(), 0.5f);
  const run_result expected = s.run({{"x", x}});
  REQUIRE(devices_of(expected) == names{"cpu", "one/cpu"});
  std::atomic<bool> over{false};
  std::atomic<size_t> runs{0}, moved{0};
  const auto call = [&] {
    while (!over) {
      const run_result r = s.run({{"x", x}});
      CHECK(is_same(r, expected));
      CHECK(r.stats.lost_devices.empty()); // none had to be done again
      moved += devices_of(r) == names{"cpu"};
      ++runs;
    }
  };
  std::thread first(call), second(call);
  await([&] { return runs > 10; });
  CHECK(one->terminate() == 0);
  await([&, before = moved.load()] { return moved > before + 10; });
  over = true;
  first.join();
  second.join();
  await([&] { return e.hosts().at(0).lost; });
  const worker_process again({"--devices", "cpu"}, one->port());
  await([&] { return !e.hosts().at(0).lost; });
  await([&] { return devices_of(s.run({{"x", x}})) == names{"cpu", "one/cpu"}; });
}

TEST_CASE("a bound session takes its state from a worker that leaves", "[actors][remote][D4][D5]") {
  worker_process one({"--devices", "cpu", "--drain", "600"});
  engine e = open_engine({"cpu", "one/cpu"}, one);
  const session s = e.load(chain(1), {.pins = {{"*", "one/cpu"}}, .fuse = false});
  const std::string output = s.outputs().at(0).name;
  bound_session bound = s.bind({output_binding{output, "x"}});
  bound.run(six);
  bound.run({});
  one.ask_to_leave();
  await([&] { return bound.run({}).stats.fetched_bytes > 0; });
  CHECK(one.await_end() == 0);
  CHECK(bound.fetch(output).dims() == shape{2, 3});
  CHECK(devices_of(bound.run({})) == names{"cpu"});
}

TEST_CASE("a worker leaves at its limit, or at a second signal, whatever is kept there", "[actors][remote][D5]") {
  const bool hurried = GENERATE(false, true);
  worker_process one({"--devices", "cpu", "--drain", hurried ? "600" : "1"});
  engine e = open_engine({"one/cpu"}, one);
  const session s = e.load(chain(1));
  const device_tensor there = e.put(six.at("x"), "one/cpu");
  const std::string output = s.outputs().at(0).name;
  s.run({}, {.device_inputs = {{"x", there}}, .keep = {output}});
  one.ask_to_leave();
  while (one.next_line().find("draining") == std::string::npos) {
  }
  CHECK_NOTHROW(s.run(six)); // nothing else is left
  if (hurried)
    one.ask_to_leave();
  std::string log;
  for (std::string line = one.next_line(); !line.empty(); line = one.next_line())
    log += line;
  CHECK(one.await_end() == 0);
  CHECK_THAT(log, Contains(hurried ? "a second signal" : "the limit of 1 s"));
  await([&] { return e.hosts().at(0).lost; });
  try {
    s.run({}, {.device_inputs = {{"x", there}}});
    FAIL("a lost value was used");
  } catch (const error& why) {
    CHECK(why.code() == errc::device_lost);
    CHECK_THAT(why.what(), Contains("one/cpu") && Contains("its owner ends it"));
  }
}

TEST_CASE("two processes share the memory that a worker lends", "[actors][remote][B2]") {
  tensor x(dtype::float32, {600, 1000});
  std::fill_n(x.mutable_data<float>(), x.size(), 0.5f);
  engine here({.devices = {"cpu"}});
  const int64_t needed = bytes_needed(*bound_plan_of(here.load(chain(1, {600, 1000})), {{"x", x}})->layout, 0);
  REQUIRE(needed > 0);
  worker_process one({"--devices", "cpu", "--memory", fmt::format("cpu={}", needed * 3 / 2)});
  engine first = open_engine({"one/cpu"}, one), second = open_engine({"one/cpu"}, one);
  CHECK(first.devices().at(0).memory_bytes == needed * 3 / 2);
  const session a = first.load(chain(1, {600, 1000})), b = second.load(chain(1, {600, 1000}));
  for (int i = 0; i < 3; ++i) {
    const run_result mine = a.run({{"x", x}}), theirs = b.run({{"x", x}}); // the other's idle plan goes
    CHECK(is_same(mine, theirs));
    CHECK(first.stats().at(0).installed_plans == 1);
  }
}

TEST_CASE("a worker's owner says which hosts may use it, and how much", "[actors][remote][D2]") {
  worker_process one({"--devices", "cpu", "--sessions-per-host", "1", "--allow", "127.0.0.1"});
  const engine e = open_engine({"one/cpu"}, one);
  CHECK_THROWS_WITH(open_engine({"one/cpu"}, one), Contains("host '127.0.0.1' has 1 sessions here already"));
  std::string log;
  while (log.find("refused") == std::string::npos)
    log = one.next_line();
  CHECK_THAT(log, Contains(R"("host":"127.0.0.1")") && Contains("has 1 sessions here already"));
  const worker_process other({"--devices", "cpu", "--allow", "somebody,else"});
  CHECK_THROWS_WITH(open_engine({"one/cpu"}, other), Contains("host '127.0.0.1' is not one of those"));
}

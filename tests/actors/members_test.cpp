// Devices that join a running engine, are lost, and come back.
#include "actors/engine_access.hpp"
#include "support/alternating_runs.hpp"
#include "support/catch.hpp"
#include "support/fault_device.hpp"
#include "support/reference_device.hpp"

#include <random>

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

device_factory reference(const std::string& name) {
  return [name] { return std::make_unique<reference_device>(name); };
}

} // namespace

TEST_CASE("a device that joins an engine is used by the next run of each session", "[actors][C11]") {
  engine e = make_engine({.devices = {}}, {.custom_devices = {reference("a")}});
  const session first = e.load(chain(4), alternating), second = e.load(chain(2), alternating);
  const run_result before = first.run(six);
  CHECK(devices_of(before) == names{"a"});
  add_devices(e, {reference("b"), reference("c")});
  CHECK(e.devices().size() == 3);
  const run_result after = first.run(six);
  CHECK(devices_of(after) == names{"a", "b", "c"});
  CHECK(std::ranges::equal(after.outputs.begin()->second.values<float>(),
                           before.outputs.begin()->second.values<float>()));
  CHECK(devices_of(second.run(six)) == names{"a", "b", "c"});
  CHECK(devices_of(e.load(chain(3), alternating).run(six)) == names{"a", "b", "c"});
}

TEST_CASE("a device that joins has a living name of its own, and joins with the others or not at all",
          "[actors][C11]") {
  engine e = make_engine({.devices = {}}, {.custom_devices = {reference("a")}});
  const session s = e.load(chain(4), alternating);
  CHECK_THROWS_WITH(add_devices(e, {reference("b"), reference("a")}), Contains("two devices are called 'a'"));
  CHECK_THROWS_WITH(add_devices(e, {reference("b"), reference("b")}), Contains("two devices are called 'b'"));
  CHECK(e.devices().size() == 1);
  CHECK(devices_of(s.run(six)) == names{"a"});
  add_devices(e, {reference("b")});
  CHECK(devices_of(s.run(six)) == names{"a", "b"});
}

TEST_CASE("a device that was lost comes back under its name and is used again", "[actors][C11]") {
  engine e = make_engine({.devices = {}, .memory = {}}, {.custom_devices = {reference("a"), reference("b")}});
  const session s = e.load(chain(4), {.pins = {{"*", "b"}}, .fuse = false});
  CHECK(devices_of(s.run(six)) == names{"a", "b"});
  const device_tensor old = e.put(six.at("x"), "b");
  lose_devices(e, called("b"), "the link to host 'far' is gone");
  CHECK(e.lost_devices() == names{"b"});
  CHECK_THROWS_WITH(e.put(six.at("x"), "b"), Contains("'b'") && Contains("the link to host 'far' is gone"));
  CHECK(devices_of(s.run(six)) == names{"a"});
  add_devices(e, {reference("b")});
  const run_result again = s.run(six);
  REQUIRE(devices_of(again) == names{"a", "b"});
  CHECK(e.stats().back().chunks == 1); // by the pin
  CHECK(e.stats().at(1).chunks == 0);
  CHECK(e.fetch(e.put(six.at("x"), "b")).dims() == shape{2, 3});
  const session later = e.load(chain(4), {.pins = {{"*", "b"}}, .fuse = false});
  later.run(six);
  CHECK(e.stats().back().chunks == 2);
}

TEST_CASE("a run in flight on a device whose host is gone starts over at once", "[actors][C11]") {
  engine e =
      make_engine({.devices = {}, .device_timeout = 60s},
                  {.custom_devices = {[] {
                                        return std::make_unique<fault_device>(std::make_unique<reference_device>("b"),
                                                                              fault_script{.stall_at = 0});
                                      },
                                      reference("a")}});
  const session s = e.load(chain(4), {.fuse = false});
  auto answer = s.run_async(six);
  CHECK(answer.wait_for(100ms) == std::future_status::timeout);
  lose_devices(e, called("b"), "the link to host 'far' is gone");
  const run_result r = answer.get();
  CHECK(r.stats.lost_devices == names{"b"});
}

TEST_CASE("while devices join and are lost at random, each run is answered", "[actors][C11]") {
  std::minstd_rand random(7);
  const auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  engine e = make_engine({.devices = {}}, {.custom_devices = {reference("base")}});
  const session one = e.load(chain(5), alternating), other = e.load(fan_out(3, 3), alternating);
  const named_tensors row{{"x", floats({4}, {1, 2, 3, 4})}};
  const auto want = one.run(six).outputs.begin()->second;
  std::vector<std::future<run_result>> runs;
  std::vector<bool> there(3, false);
  for (int i = 0; i < 200; ++i) {
    const size_t d = below(there.size());
    const std::string name = fmt::format("d{}", d);
    runs.push_back(one.run_async(six));
    other.run_async(row).get();
    if (there[d])
      lose_devices(e, called(name), "the test took it");
    else
      add_devices(e, {reference(name)});
    there[d] = !there[d];
  }
  for (auto& answer : runs)
    CHECK(std::ranges::equal(answer.get().outputs.begin()->second.values<float>(), want.values<float>()));
  CHECK(e.devices().size() > 90);
}

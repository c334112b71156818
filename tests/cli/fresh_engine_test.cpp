// Work after work on devices that some of it loses.
#include "cli/fresh_engine.hpp"
#include "support/bound_values.hpp"

using namespace troupe;
using namespace troupe::test;

TEST_CASE("a device that one piece of work loses is there again for the next", "[cli][C11]") {
  const auto opened = std::make_shared<int>(0);
  const device_factory dies_once = [opened] {
    return reference("ref", {.die_at = ++*opened == 1 ? 0 : fault_script::never})();
  };
  cli::fresh_engine devices({.devices = {}}, {.custom_devices = {dies_once}});
  const auto run = [&] { return devices.get().load(chain(1)).run({{"x", filled({2, 3}, 1.f)}}); };
  CHECK(thrown_by(run).code() == errc::device_lost);
  CHECK(run().outputs.size() == 1);
  CHECK(run().stats.lost_devices.empty());
  CHECK(*opened == 2);
}

TEST_CASE("an engine says which of its devices are lost", "[actors][C11]") {
  engine e(engine_of({reference("good"), reference("bad", {.die_at = 0})}));
  CHECK(e.lost_devices().empty());
  const session s = e.load(chain(4), {.policy = placement_policy::round_robin, .fuse = false});
  CHECK(s.run({{"x", filled({2, 3}, 1.f)}}).stats.lost_devices == std::vector<std::string>{"bad"});
  CHECK(e.lost_devices() == std::vector<std::string>{"bad"});
}

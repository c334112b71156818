#include "plan/known_profile.hpp"

#include "support/catch.hpp"

using namespace troupe;

namespace {

device_info some_device(std::string host) {
  device_info d{.name = "cpu", .host = std::move(host), .description = "a processor", .units = 8};
  d.profile.launch_s = 3e-6;
  return d;
}

measured_profile measured_of(const device_info& d, double launch_s, double node_s) {
  return {key_of(d), {{"launch_s", launch_s}}, {{{{1, 2}, node_s}}, {}}};
}

double node_seconds(const device_profile& p) {
  return p.measured ? p.measured->seconds({{1, 2}, "Conv"}, 7) : -1;
}

} // namespace

TEST_CASE("what was measured of a device here replaces what is usual", "[plan][cost][A14]") {
  const device_info here = some_device("");
  device_info other = here;
  other.units = 4;
  const measured_profile all[] = {measured_of(other, 9e-6, 9), measured_of(here, 1e-6, 5)};
  const device_profile known = known_profile(here, all);
  CHECK(known.launch_s == 1e-6);
  CHECK(node_seconds(known) == 5);
  CHECK(known_profile(here, {}) == here.profile);
  CHECK(known_profile(here, std::span(all).first(1)) == here.profile);
}

TEST_CASE("a device of another host keeps its own speeds, and takes the node times of one like it here",
          "[plan][cost][A14]") {
  const device_info far = some_device("far");
  const measured_profile all[] = {measured_of(far, 1e-6, 5)};
  const device_profile known = known_profile(far, all);
  CHECK(known.launch_s == 3e-6);
  CHECK(node_seconds(known) == 5);
}

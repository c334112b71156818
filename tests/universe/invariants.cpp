// What must hold when all trouble is over.
#include "universe/world.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace troupe::universe {

using namespace std::chrono_literals;

namespace {

/// Lets time pass until `holds`; returns whether it does within a minute.
template <class Condition>
bool comes_true(Condition&& holds) {
  for (const auto end = std::chrono::steady_clock::now() + 60s; !holds(); std::this_thread::sleep_for(20ms))
    if (std::chrono::steady_clock::now() > end)
      return false;
  return true;
}

} // namespace

void world::check_hosts_are_back() {
  for (const home& at : homes_) {
    const auto lost = [&] {
      std::string names;
      for (const host_summary& h : at.lives->hosts())
        if (h.lost)
          names += fmt::format(" {} ({})", h.name, h.problem);
      return names;
    };
    if (!comes_true([&] { return lost().empty(); }))
      tale_.accuse("hosts do not come back to {}:{}", at.name, lost());
  }
}

/// A worker's device that is lost while its worker lives does not come back: something must have been to blame.
void world::check_devices_are_back() {
  if (rules_.failing_devices || excuses_.silences)
    return;
  for (const home& from : homes_)
    for (const site& at : sites_) {
      const auto is_its = [prefix = at.name + "/"](const std::string& device) { return device.starts_with(prefix); };
      const auto living = [&] { // lost ones are listed, too
        return std::ranges::count_if(from.lives->devices(), is_its, &device_summary::name) -
               std::ranges::count_if(from.lives->lost_devices(), is_its);
      };
      if (!comes_true([&] { return std::cmp_equal(living(), at.devices); }))
        tale_.accuse("{} has {} of the {} devices of {}", from.name, living(), at.devices, at.name);
    }
}

void world::check_nothing_is_left() {
  for (const site& at : sites_) {
    const remote::host_service& service = at.worker->service();
    if (!comes_true([&] { return service.sessions() == 0; }))
      tale_.accuse("{} sessions are left on {}", service.sessions(), at.name);
    if (at.may_hang)
      continue;
    if (!comes_true([&] { return service.offered() == 0; }))
      tale_.accuse("{} values and weights are still on offer on {}", service.offered(), at.name);
    if (!comes_true([&] { return service.held_bytes() == 0; }))
      tale_.accuse("{} bytes are still held on {}", service.held_bytes(), at.name);
  }
}

} // namespace troupe::universe

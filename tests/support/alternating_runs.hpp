// Shared by tests of devices that join, leave and are lost: a run of `chain`, its nodes on all devices in turn.
#pragma once

#include "support/small_models.hpp"

namespace troupe::test {

using names = std::vector<std::string>;

inline const named_tensors six{{"x", floats({2, 3}, {1, 2, 3, 4, 5, 6})}};
inline const session_options alternating{.policy = placement_policy::round_robin, .fuse = false};

/// Returns the devices that a run used, by name, in the order of their plan.
inline names devices_of(const run_result& r) {
  names all;
  for (const auto& [name, ms] : r.stats.busy_ms)
    all.push_back(name);
  return all;
}

inline auto called(const std::string& name) {
  return [name](const device_info& d) { return d.name == name; };
}

} // namespace troupe::test

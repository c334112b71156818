// What `facts_of` and `to_cluster` pass on (troupe/inspect.hpp, troupe/simulation.hpp).
#pragma once

#include "plan/device_info.hpp"

namespace troupe {

/// See the top of this file.
struct device_facts {
  std::vector<device_info> devices;
};

} // namespace troupe

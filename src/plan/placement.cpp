#include "plan/placement.hpp"

namespace troupe {

std::vector<device_index> place(const graph& program, std::span<const device_info> devices,
                                const plan_options& options) {
  std::vector<device_index> placement(program.nodes.size(), 0);
  if (options.policy == placement_policy::round_robin)
    for (size_t n = 0; n < placement.size(); ++n)
      placement[n] = static_cast<device_index>(n % devices.size());
  return placement;
}

} // namespace troupe

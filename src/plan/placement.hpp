// Placement: which device runs which node. A policy is a pure function of the graph and the devices.
#pragma once

#include "plan/plan.hpp"

namespace troupe {

/// Returns the device of every node of a topologically sorted graph.
std::vector<device_index> place(const graph& program, std::span<const device_info> devices,
                                const plan_options& options);

} // namespace troupe

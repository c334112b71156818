// Placement: which device runs which node.
//
// A policy (policies.hpp) decides; pins hold under every policy. Devices marked `fallback` get only what no other
// device can run, and nodes beside it that would only send small values forth and back.
#pragma once

#include "plan/plan.hpp"

namespace troupe {

/// Returns the device of every node of a topologically sorted graph. Throws `errc::unsupported`, naming node and
/// devices, if no device can run a node, and what `placement_problem` and the policy throw.
std::vector<device_index> place(const graph& program, std::span<const device_info> devices,
                                const plan_options& options);

} // namespace troupe

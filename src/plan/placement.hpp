// Placement: which device runs which node. A policy is a pure function of the graph and the devices.
//
// Every node goes to a device that can run it: GPUs run what has launches for them (gpu_support.hpp), other devices
// everything. Devices marked `fallback` get only what no other device can run, and nodes beside it that would only send
// small values forth and back.
#pragma once

#include "plan/plan.hpp"

namespace troupe {

/// Returns the device of every node of a topologically sorted graph. Throws `errc::unsupported`, naming node and devices, where
/// no device can run a node.
std::vector<device_index> place(const graph& program, std::span<const device_info> devices,
                                const plan_options& options);

} // namespace troupe

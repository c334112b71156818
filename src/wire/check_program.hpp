// Whether a program that came from another host may run: kernels trust types, dims, layouts and host-known elements, so
// all of them must be what the operators' own inference gives. Beyond that, the rules for a model from a file hold
// (base/limits.hpp).
#pragma once

#include "plan/bind/bound_plan.hpp"

namespace troupe::wire {

/// Checks a program whose nodes have their rows, placed on devices of which those for control flow come last. Returns
/// the nodes whose dims inference writes otherwise, or cannot tell without numbers: they are to be compared at each
/// binding. Throws `errc::invalid_input`, `errc::invalid_model`, `errc::unsupported`.
std::vector<node_id> check_program(graph& g, std::span<const device_info> devices,
                                   std::span<const device_index> placement);

/// Compares these nodes' dims in a binding with what inference gives for its numbers. Throws `errc::invalid_input`.
void check_numbers(const bound_plan& bound, std::span<const node_id> nodes);

} // namespace troupe::wire

// Writes a program in parts: see split.hpp.
#pragma once

#include "plan/split/decide.hpp"

namespace troupe {

/// Writes what has been decided into a program, and its placement. Throws `errc::unsupported` if inference gives a part
/// other dims than the decision.
void apply_split(graph& g, std::vector<device_index>& placement, std::span<const device_info> devices,
                 const split_team& team, const split_decision& decision);

} // namespace troupe

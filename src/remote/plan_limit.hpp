// The largest size of a plan that travels to a worker.
#pragma once

#include "graph/graph.hpp"

namespace troupe::remote {

/// A plan names its nodes and carries small weights, and strings of any length; no sensible one is longer.
inline constexpr int64_t max_plan_bytes = int64_t{1} << 30;

/// Throws `errc::unsupported` if the strings among a program's weights, which travel with its plan, are more than
/// `most` bytes: names the longest, and says what to do.
void check_strings(const graph& program, int64_t most = max_plan_bytes);

} // namespace troupe::remote

// What keeps a stream of requests from going faster, from counters of its queue and its replicas.
#pragma once

#include "troupe/monitor.hpp"

namespace troupe::monitoring {

/// Returns what samples say about the time from the first to the last, what gains most first; nothing if no replica
/// worked between.
std::vector<finding> stream_findings(std::span<const monitor_sample> samples);

} // namespace troupe::monitoring

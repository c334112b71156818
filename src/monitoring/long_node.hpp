// One node that most of a run waits for.
#pragma once

#include "monitoring/traced_work.hpp"
#include "troupe/monitor.hpp"

namespace troupe::monitoring {

/// Returns a finding if one of several nodes takes half of the time or more.
std::optional<finding> find_long_node(const traced_work& work);

} // namespace troupe::monitoring

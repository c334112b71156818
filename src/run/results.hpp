// Accounts of what runs cost, added up.
#pragma once

#include "troupe/results.hpp"

namespace troupe {

/// Adds what a part of the work cost, all but the time from call to result: parts may run side by side.
void add(run_stats& all, const run_stats& part);

} // namespace troupe

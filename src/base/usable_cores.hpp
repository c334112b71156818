// How many cores this process may keep busy.
#pragma once

namespace troupe {

/// Returns the cores that the process's affinity and its control group's quota of time allow, the quota rounded up; at
/// least 1.
int usable_cores();

} // namespace troupe

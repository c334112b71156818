// What a chunk's run does with its caches where they may grow in place (residents.hpp).
#pragma once

#include "vulkan/installations.hpp"
#include "vulkan/residents.hpp"

namespace troupe::vulkan {

/// Returns the caches of a run that have been made ahead; nullopt if there are none: then `grows_in_place` tells
/// whether they are to be extended.
std::optional<grown_caches> take_caches_ahead(residents& own, const installed_binding& binding, const chunk_work& work);

/// Returns whether a run's caches grow in place: all of the chunk's are in this device's memory, and it leaves them
/// there alone.
bool grows_in_place(const residents& own, const installed_binding& binding, const chunk_work& work);

/// Makes the caches of a run that grow in place. Throws as `residents::extend` does.
grown_caches extend_caches(residents& own, const installed_binding& binding, run_values& values);

/// Hands the run its caches before the chunk is complete: they are not read before it is answered, and once it is
/// complete the caller waits. Returns which downloads they are.
std::vector<uint32_t> leave_caches(grown_caches caches, const installed_binding& binding, const chunk_work& work);

} // namespace troupe::vulkan

// Measures a device through the engine's public interface, for the cost model.
#pragma once

#include "actors/engine_access.hpp"
#include "cost/profile_file.hpp"

namespace troupe::cli {

/// Measures device `index` of an engine (not a null device): matrix products by type, memory traffic, launches, barriers, chunks,
/// and the link each way where the device has memory of its own. What it cannot run is left out. Takes a few seconds; `progress` is told how
/// many figures are done of how many. Throws what runs throw.
measured_profile calibrate(engine& devices, size_t index, const std::function<void(double, double)>& progress);

} // namespace troupe::cli

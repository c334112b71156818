// Measures a device through the engine's public interface, for the cost model.
#pragma once

#include "actors/engine_access.hpp"
#include "measure/calibration.hpp"

namespace troupe::cli {

/// Measures device `index` of an engine (not a null device); see `troupe::calibrate`. Takes a few seconds.
measured_profile calibrate(engine& devices, size_t index, const std::function<void(double, double)>& progress);

} // namespace troupe::cli

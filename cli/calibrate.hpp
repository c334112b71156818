// Measures a device through the engine's public interface, for the cost model.
#pragma once

#include "actors/engine_access.hpp"
#include "measure/calibration.hpp"

namespace troupe::cli {

/// Measures device `index` of an engine (not a null device); see `troupe::calibrate`. Takes a few seconds.
measured_profile calibrate(engine& devices, size_t index, const std::function<void(double, double)>& progress);

/// Measures the link to a host: round trips by messages, its speeds by values that go to a device there and back as
/// those of runs do, in memory that is used again. Takes some seconds at most.
measured_link calibrate_link(engine& devices, const std::string& host);

} // namespace troupe::cli

// How fast a device is, from small models that run on it: for the cost model.
//
// Each figure comes from models that differ in one thing, so that what they have in common cancels out. Pure, but for
// the function that runs a model: what follows from the times is decided here.
#pragma once

#include "cost/profile_file.hpp"
#include "plan/device_info.hpp"
#include "troupe/built_model.hpp"

#include <functional>

namespace troupe {

/// A model to time wholly on the device, nothing fused.
struct probe {
  built_model model;
  size_t chunks = 1; // of equal length, into which its plan is cut (`cut_plan`)
  /// Whether the inputs are in memory that GPUs reach directly, as values are that move between devices; else they are
  /// where a caller may have them.
  bool reachable_inputs = true;
  double pause_s = 0; // before each run
};

/// What one run of a probe took, in seconds.
struct probe_times {
  double wall_s = 0;  // from call to result
  double busy_s = 0;  // of the device
  double nodes_s = 0; // of all nodes, each timed for itself (`node_seconds`)
};

/// Runs a probe `probe_repeats` times after a warm-up of `probe_warm_up_s`, in which kernels are compiled; returns
/// nothing if the device cannot run it.
using probe_runner = std::function<std::vector<probe_times>(const probe&)>;

inline constexpr int probe_repeats = 7;

/// A GPU raises its clocks under load, and lowers them without: a model runs so long before it is timed.
double probe_warm_up_s(const device_info& device);

/// Measures a device (not a null device): matrix products by type, memory traffic, launches, barriers, chunks, and the
/// link each way if the device has memory of its own. What it cannot run is left out. `progress` is told how many
/// figures are done of how many. Throws what `run` throws.
measured_profile calibrate(const device_info& device, const probe_runner& run,
                           const std::function<void(double, double)>& progress);

/// Returns the saved plan `saved`, which has one chunk, with that chunk cut into `count`.
std::string cut_plan(const std::string& saved, size_t count);

} // namespace troupe

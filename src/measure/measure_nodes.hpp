// From traces of a model's runs to measured times of its nodes.
//
// A trace says how long each node took, but taking the time costs time: a GPU's nodes no longer run side by side, a CPU
// looks at the clock. So nodes share what the device was busy in untraced runs, less copies and barriers, which are
// predicted apart, in proportion to their traced times. Pure functions.
#pragma once

#include "cost/node_times.hpp"
#include "plan/bind/bound_plan.hpp"
#include "trace/run_trace.hpp"
#include "troupe/results.hpp"

namespace troupe {

/// One traced run.
struct traced_run {
  run_trace trace;
  double busy_s = 0; // seconds that the device was busy in it
};

/// What runs of one model say.
struct model_runs {
  std::span<const traced_run> traced; // of one plan
  std::span<const shape> dims;        // of that plan's values, see `predict`
  double busy_s = 0;                  // seconds that the device was busy in an untraced run
};

/// Returns what the nodes took that ran on the device called `device`, those of bodies included: medians over the runs,
/// scaled (see the top of this file), the mean of nodes with equal keys; and by operator, the sums of both and of the
/// roofline's times. Views are left out.
measured_nodes measure_nodes(const model_runs& runs, std::string_view device);

/// Returns the values' dims in runs of the plan of `bound`, for predictions: those of later segments are expected ones.
std::vector<shape> dims_of_runs(const bound_plan& bound, const bindings& expected);

/// Returns the seconds that a device was busy in a run; 0 if it took no part.
double busy_seconds(const run_stats& run, std::string_view device);

/// Returns the seconds of all nodes of a traced run, bodies aside, each timed for itself.
double node_seconds(const run_trace& run);

/// Returns one device of each key, under the name that opens it; null devices, mere fallbacks
/// and devices of other hosts, which say themselves how fast they are, take no part.
std::vector<device_info> different_devices(const std::vector<device_info>& devices);

} // namespace troupe

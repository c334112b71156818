// From traces of a model's runs to measured times of its nodes.
//
// A trace says how long each node took, but taking the time costs time: a GPU's nodes no longer run side by side, a CPU looks at the
// clock. So nodes share what the device was busy in untraced runs, less copies and barriers, which are predicted apart, in
// proportion to their traced times. Pure functions.
#pragma once

#include "cost/node_times.hpp"
#include "trace/run_trace.hpp"

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

/// Returns what the nodes took that ran on the device called `device`, those of bodies included: medians over the runs, scaled (see
/// the top of this file), the mean of nodes with equal keys; and by operator, the sums of both and of the roofline's times. Views are
/// left out.
measured_nodes measure_nodes(const model_runs& runs, std::string_view device);

} // namespace troupe

// Traces of runs that never took place: a plan, and the times of its parts.
#pragma once

#include "plan/graphs.hpp"
#include "trace/run_trace.hpp"

#include <functional>

namespace troupe::testing {

/// A gigaflop, and nothing to read: a hundredth of a second on the devices of graphs.hpp.
inline op_cost gigaflop(const attributes&, const call_shapes&) {
  return {.flops = 1e9};
}
inline const op_def& work_op =
    gpu_op({.domain = "test", .name = "work", .since = 1, .inputs = {1, 255}, .infer = infer_nothing, .cost = gigaflop},
           any_launch);
inline const op_def host_work_op{
    .domain = "test", .name = "host_work", .since = 1, .inputs = {1, 255}, .infer = infer_nothing, .cost = gigaflop};

/// Times of the parts of a run, in ms.
struct part_times {
  std::function<double(const plan&, node_id)> node = [](const plan&, node_id) { return 10.0; };
  double input = 0, output = 0; // of each value of the caller's that a device copies
  double move = 0;              // of each value between devices, up and down alike
  double lead = 0, answer = 0;  // of each chunk
};

/// Returns the trace of a run whose parts take these times, each as early as can be: copies in, nodes, copies out.
run_trace made_run(const std::shared_ptr<const plan>& p, const part_times& times = {});

/// Returns a run's seconds.
double seconds_of(const run_trace& trace);

} // namespace troupe::testing

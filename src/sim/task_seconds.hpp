// Task graphs whose tasks take stated times (`simulation_options::task_seconds`).
#pragma once

#include "graph/graph.hpp"
#include "plan/device_info.hpp"

namespace troupe::sim {

/// Gives the devices measured times: [task * devices + device] seconds of each task, in the order of `to_model`
/// (schedules/task_model.hpp), instead of those that they have. `tasks`: the model, resolved. Throws
/// `errc::invalid_argument` for a model that is no task graph, too many tasks, a wrong number of seconds, and seconds
/// that cannot be.
void set_task_seconds(std::vector<device_info>& devices, const graph& tasks, std::span<const double> seconds);

} // namespace troupe::sim

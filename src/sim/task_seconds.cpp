#include "sim/task_seconds.hpp"

#include "base/error.hpp"
#include "cost/cost_model.hpp"

#include <algorithm>

namespace troupe::sim {
namespace {

/// Returns the dims of each value: a task's attributes say those of what it makes, before any inference.
std::vector<shape> dims_of(const graph& tasks) {
  std::vector<shape> dims(tasks.values.size(), shape{1}); // the input's
  for (const node& n : tasks.nodes) {
    const std::vector<int64_t> elements = n.attrs.integers("elements");
    for (size_t i = 0; i < n.outputs.size(); ++i)
      dims[n.outputs[i]] = {elements.at(i)};
  }
  return dims;
}

/// Returns what a node's measured time is found by.
hash128 key_of(const graph& tasks, const node& n, const std::vector<shape>& dims) {
  call_shapes call = shapes_of(tasks, n, [&](value_id v) { return dims[v]; });
  std::fill(call.input_types.begin(), call.input_types.end(), dtype::float32);
  std::fill(call.output_types.begin(), call.output_types.end(), dtype::float32);
  return identity_of(tasks, n, call).key;
}

} // namespace

void set_task_seconds(std::vector<device_info>& devices, const graph& tasks, std::span<const double> seconds) {
  const size_t count = tasks.nodes.size();
  if (std::any_of(tasks.nodes.begin(), tasks.nodes.end(), [](const node& n) { return n.op_type != "Task"; }))
    fail(errc::invalid_argument, "simulation_options: task_seconds are of a task graph, and the model is none");
  if (seconds.size() != count * devices.size())
    fail(errc::invalid_argument, "simulation_options: {} task_seconds are not those of {} tasks on {} devices",
         seconds.size(), count, devices.size());
  const std::vector<shape> dims = dims_of(tasks);
  std::vector<hash128> keys(count);
  for (const node& n : tasks.nodes)
    keys.at(static_cast<size_t>(n.attrs.integer("task"))) = key_of(tasks, n, dims);
  for (size_t d = 0; d < devices.size(); ++d) {
    measured_nodes measured;
    for (size_t n = 0; n < count; ++n)
      measured.nodes.emplace_back(keys[n], seconds[n * devices.size() + d]);
    devices[d].profile.measured = std::make_shared<const node_times>(measured);
  }
}

} // namespace troupe::sim

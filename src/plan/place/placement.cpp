#include "plan/place/placement.hpp"

#include "ops/op.hpp"
#include "plan/place/placement_problem.hpp"
#include "plan/place/policies.hpp"
#include "plan/place/policy_library.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Brings nodes that do next to no work to the device that makes and reads their values, if that is not a GPU: a view
/// or shape arithmetic between two nodes of such a device is not worth an upload and a download.
class round_trip_saver {
public:
  explicit round_trip_saver(placement_problem& problem) : problem_(problem) {}

  /// Backwards, so that chains of such nodes follow their last reader.
  void improve(std::vector<device_index>& placed) {
    for (auto n = static_cast<node_id>(placed.size()); n-- > 0;) {
      const device_index better = better_place(n, placed);
      if (better != no_device && problem_.allows(n, better))
        placed[n] = better;
    }
  }

private:
  bool on_gpu(device_index d) const { return problem_.devices()[d].gpu.has_value(); }

  device_index better_place(node_id n, const std::vector<device_index>& placed) {
    if (!on_gpu(placed[n]))
      return no_device;
    const node& call = problem_.program().nodes[n];
    const adjacency& edges = problem_.edges();
    const device_index readers = home_of_readers(call, placed);
    const bool view = is_view(call);
    const node_id source = view ? edges.producer[call.inputs[0]] : -1;
    if (readers != no_device && (is_small_arithmetic(call) || (view && (source < 0 || placed[source] == readers))))
      return readers;
    if (view && source >= 0 && !on_gpu(placed[source]) && edges.consumers[call.outputs[0]].empty())
      return placed[source]; // a graph output that only reshapes what is on the host
    return no_device;
  }

  /// Returns the device, no GPU, that runs all readers of a node's outputs; `no_device` if there are none or others.
  device_index home_of_readers(const node& call, const std::vector<device_index>& placed) const {
    device_index home = no_device;
    for (value_id v : call.outputs) {
      if (v == no_value)
        continue;
      for (node_id reader : problem_.edges().consumers[v]) {
        if (on_gpu(placed[reader]) || (home != no_device && home != placed[reader]))
          return no_device;
        home = placed[reader];
      }
    }
    return home;
  }

  /// Whether a node computes a few integers from a few integers: shape arithmetic and the like.
  bool is_small_arithmetic(const node& call) {
    const auto is_small = [&](value_id v) {
      if (v == no_value)
        return true;
      const dtype type = problem_.program().values[v].type;
      double size = (types::integers | types::boolean) & set_of(type) ? 1 : 1e9;
      for (int64_t d : problem_.dims(v))
        size *= static_cast<double>(d);
      return size <= max_known_elements;
    };
    return std::all_of(call.inputs.begin(), call.inputs.end(), is_small) &&
           std::all_of(call.outputs.begin(), call.outputs.end(), is_small);
  }

  placement_problem& problem_;
};

schedule run_policy(placement_problem& problem, const plan_options& options) {
  if (options.policy != placement_policy::plug_in)
    return problem.run(row_of(options.policy).place);
  if (!options.plugin)
    fail(errc::invalid_argument,
         "the policy is to be a plug-in, but none is given: name its file (`session_options::policy_plugin`)");
  return problem.run(options.plugin->place(), options.plugin->description());
}

} // namespace

std::vector<device_index> place(const graph& program, std::span<const device_info> devices,
                                const plan_options& options) {
  placement_problem problem(program, devices, options);
  std::vector<device_index> placed = run_policy(problem, options).device;
  const auto on_gpu = [&](device_index d) { return devices[d].gpu.has_value(); };
  const bool mixed =
      std::any_of(placed.begin(), placed.end(), on_gpu) && !std::all_of(placed.begin(), placed.end(), on_gpu);
  if (mixed && options.policy != placement_policy::round_robin) // that one moves values on purpose
    round_trip_saver(problem).improve(placed);
  return placed;
}

} // namespace troupe

#include "plan/placement.hpp"

#include "ops/op.hpp"
#include "plan/gpu_support.hpp"

#include <algorithm>

namespace troupe {
namespace {

class placer {
public:
  placer(const graph& program, std::span<const device_info> devices) : program_(program), devices_(devices) {
    for (const bool fallback : {false, true}) {
      for (device_index d = 0; d < devices.size(); ++d)
        if (devices[d].fallback == fallback)
          order_.push_back(d);
      if (!fallback)
        regular_ = order_.size();
    }
    if (std::any_of(devices.begin(), devices.end(), [](const device_info& d) { return d.gpu.has_value(); }))
      support_.emplace(program);
  }

  std::vector<device_index> single() {
    std::vector<device_index> placement(program_.nodes.size());
    for (size_t n = 0; n < placement.size(); ++n)
      placement[n] = order_[find(static_cast<node_id>(n), 0)];
    const auto on_gpu = [&](device_index d) { return devices_[d].gpu.has_value(); };
    if (std::any_of(placement.begin(), placement.end(), on_gpu) &&
        !std::all_of(placement.begin(), placement.end(), on_gpu))
      spare_round_trips(placement);
    return placement;
  }

  std::vector<device_index> round_robin() {
    std::vector<device_index> placement(program_.nodes.size());
    size_t next = 0;
    for (size_t n = 0; n < placement.size(); ++n) {
      const size_t at = find(static_cast<node_id>(n), next);
      placement[n] = order_[at];
      if (at < regular_)
        next = (at + 1) % regular_;
    }
    return placement;
  }

private:
  /// Returns the position in `order_` of the first device that can run node `n`: from `start` on around the regular ones,
  /// then the fallback ones.
  size_t find(node_id n, size_t start) {
    const gpu_features* refused = nullptr;
    for (size_t i = 0; i < order_.size(); ++i) {
      const size_t at = i < regular_ ? (start + i) % regular_ : i;
      const std::optional<gpu_features>& gpu = devices_[order_[at]].gpu;
      if (!gpu)
        return at;
      if (refused && *refused == *gpu)
        continue;
      if (support_->obstacle(n, *gpu) == gpu_obstacle::none)
        return at;
      refused = &*gpu;
    }
    std::string names;
    for (device_index d : order_)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", devices_[d].name);
    const node& call = program_.nodes[n];
    fail(errc::unsupported, "{} can run on none of the devices ({}): {}; add a CPU device", describe(call), names,
         describe(support_->obstacle(n, *refused), call));
  }

  /// Brings nodes that do next to no work to the device that makes and reads their values, where that is no GPU: a view or
  /// shape arithmetic between two nodes of a fallback device is not worth an upload and a download. Backwards, so that
  /// chains of such nodes follow their last reader.
  void spare_round_trips(std::vector<device_index>& placement) {
    const adjacency edges = adjacency_of(program_);
    for (auto n = static_cast<node_id>(placement.size()); n-- > 0;) {
      const node& call = program_.nodes[n];
      if (!devices_[placement[n]].gpu)
        continue;
      const std::optional<device_index> readers = home_of_readers(call, edges, placement);
      const bool view = is_view(call);
      const node_id source = view ? edges.producer[call.inputs[0]] : -1;
      if (readers && (is_small_arithmetic(call) || (view && (source < 0 || placement[source] == *readers))))
        placement[n] = *readers;
      else if (view && source >= 0 && !devices_[placement[source]].gpu && edges.consumers[call.outputs[0]].empty())
        placement[n] = placement[source]; // a graph output that only reshapes what is on the host
    }
  }

  /// Returns the device, no GPU, that runs all readers of a node's outputs; nullopt where there are none or others.
  std::optional<device_index> home_of_readers(const node& call, const adjacency& edges,
                                              const std::vector<device_index>& placement) const {
    std::optional<device_index> home;
    for (value_id v : call.outputs) {
      if (v == no_value)
        continue;
      for (node_id reader : edges.consumers[v]) {
        if (devices_[placement[reader]].gpu || home.value_or(placement[reader]) != placement[reader])
          return std::nullopt;
        home = placement[reader];
      }
    }
    return home;
  }

  /// Whether a node computes a few integers from a few integers: shape arithmetic and the like.
  bool is_small_arithmetic(const node& call) {
    const auto is_small = [&](value_id v) {
      if (v == no_value)
        return true;
      double size = (types::integers | types::boolean) & set_of(program_.values[v].type) ? 1 : 1e9;
      for (int64_t d : support_->representative_dims(v))
        size *= static_cast<double>(d);
      return size <= max_known_elements;
    };
    return std::all_of(call.inputs.begin(), call.inputs.end(), is_small) &&
           std::all_of(call.outputs.begin(), call.outputs.end(), is_small);
  }

  const graph& program_;
  std::span<const device_info> devices_;
  std::vector<device_index> order_; // regular devices, then fallback ones
  size_t regular_ = 0;
  std::optional<gpu_support> support_; // where there is a GPU
};

} // namespace

std::vector<device_index> place(const graph& program, std::span<const device_info> devices,
                                const plan_options& options) {
  placer p(program, devices);
  return options.policy == placement_policy::round_robin ? p.round_robin() : p.single();
}

} // namespace troupe

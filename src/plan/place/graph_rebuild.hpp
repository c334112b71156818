// What passes over a placed graph share that write its nodes anew, some in another form, with nodes between that change
// forms.
#pragma once

#include "plan/plan.hpp"

#include <unordered_map>

namespace troupe {

/// The graph as it was, and the one that comes to be: `add` appends a node.
class graph_rebuild {
protected:
  graph_rebuild(graph& g, std::vector<device_index>& placement, std::span<const device_info> devices)
      : g_(g), devices_(devices), edges_(adjacency_of(g)), nodes_(g.nodes), old_placement_(placement),
        placement_(placement) {}

  /// From here on the graph has the nodes that are added alone.
  void begin_anew() {
    g_.nodes.clear();
    placement_.clear();
  }

  void add(node n, device_index device) {
    g_.add_node(std::move(n));
    placement_.push_back(device);
  }

  /// The other form of an old value on a device; `no_value` while there is none.
  value_id& form_of(value_id v, device_index device) {
    return forms_.try_emplace(static_cast<size_t>(v) * devices_.size() + device, no_value).first->second;
  }

  graph& g_;
  std::span<const device_info> devices_;
  const adjacency edges_;                         // of the graph as it was
  const std::vector<node> nodes_;                 // likewise
  const std::vector<device_index> old_placement_; // likewise
  std::vector<device_index>& placement_;

private:
  std::unordered_map<size_t, value_id> forms_; // by old value and device: few have any
};

} // namespace troupe

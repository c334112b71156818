#include "plan/show/annotate.hpp"

#include "graph/bodies.hpp"
#include "plan/prepared_graph.hpp"
#include "plan/split/split.hpp"

#include <algorithm>

namespace troupe {
namespace {

std::vector<std::string> results_of(const graph& g, const node& n) {
  std::vector<std::string> names;
  for (value_id v : n.outputs)
    if (v != no_value)
      names.push_back(g.values[v].name);
  return names;
}

/// Adds the tensors of a call that are in parts.
void add_shardings(node_annotation& a, const graph& g, const node& call, const call_axis& axis) {
  const auto add = [&](const std::vector<value_id>& ids, const std::vector<std::optional<axis_place>>& places) {
    for (size_t i = 0; i < ids.size() && i < places.size(); ++i)
      if (ids[i] != no_value && places[i])
        a.shardings.push_back({g.values[ids[i]].name, static_cast<int64_t>(places[i]->axis)});
  };
  add(call.outputs, axis.outputs);
  add(call.inputs, axis.inputs);
}

void add_whole_nodes(device_configuration& c, const plan& p, const graph& g) {
  std::unordered_map<std::string, device_index> device_of;
  for (node_id n = 0; n < static_cast<node_id>(p.program->nodes.size()); ++n)
    if (!p.inserted[n])
      device_of.emplace(p.program->nodes[n].name, p.placement[n]);
  for (const node& n : g.nodes) {
    const auto found = device_of.find(n.name);
    if (found == device_of.end() || has_body(n))
      continue;
    node_annotation a{.device = found->second};
    if (p.options.policy == placement_policy::pipeline)
      a.stage = a.device;
    c.add(std::move(a), n.name, results_of(g, n));
  }
}

void add_split_nodes(device_configuration& c, const plan& p, const graph& g, std::span<const device_info> devices) {
  const split_team team = saved_team(*p.split, devices, "the plan");
  c.team.assign(team.devices.begin(), team.devices.end());
  const placed_decision made = decide_placed(g, devices, p.options, team, p.split->along);
  for (node_id n = 0; n < static_cast<node_id>(g.nodes.size()); ++n) {
    const node_cut& how = made.cuts.nodes[n];
    node_annotation a;
    if (how.is == node_cut::kind::single)
      a.device = made.home[n];
    else if (how.is == node_cut::kind::cut)
      add_shardings(a, g, g.nodes[n], *how.axis);
    if (!has_body(g.nodes[n]))
      c.add(std::move(a), g.nodes[n].name, results_of(g, g.nodes[n]));
  }
}

} // namespace

device_configuration annotations_of(const plan& p) {
  const std::vector<device_info> devices = real_devices(p);
  device_configuration c{.name = "troupe", .count = static_cast<int64_t>(devices.size())};
  for (const device_info& d : devices)
    c.devices.push_back(d.name);
  const graph g = prepare(*p.given);
  if (p.split)
    add_split_nodes(c, p, g, devices);
  else
    add_whole_nodes(c, p, g);
  return c;
}

} // namespace troupe

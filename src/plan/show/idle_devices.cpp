#include "plan/show/idle_devices.hpp"

#include "base/printable.hpp"
#include "graph/bodies.hpp"
#include "plan/estimate/gpu_support.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace troupe {
namespace {

/// Returns whether the device is named, by itself or as one of several ("cpu*2").
bool is_named(const asked_devices& asked, const std::string& device) {
  return std::ranges::any_of(asked.names, [&](const std::string& given) {
    return given != "all" && given.substr(0, given.find('*')) == device.substr(0, device.find('#'));
  });
}

/// Counts, by obstacle, the nodes that the GPU cannot run, of the model as planning took it.
void count_obstacles(const plan& p, const gpu_features& gpu, std::map<std::string, int>& found) {
  const graph& g = *p.given;
  gpu_support support(g);
  for (node_id n = 0; n < static_cast<node_id>(g.nodes.size()); ++n) {
    const node& call = g.nodes[n];
    const gpu_obstacle obstacle = is_view(call) ? gpu_obstacle::none : support.obstacle(n, gpu);
    if (obstacle == gpu_obstacle::none || has_body(call))
      continue;
    const bool has_operand = !call.inputs.empty() && call.inputs[0] != no_value;
    const std::string type = has_operand ? fmt::format(" of {}", to_string(g.values[call.inputs[0]].type)) : "";
    ++found[describe(obstacle, call) + type];
  }
  for (const planned_body& body : p.bodies)
    count_obstacles(*body.compiled, gpu, found);
}

/// Why a GPU has nothing to do: what stands in the way of most nodes; empty if nothing does.
std::string obstacle_of_most(const plan& p, const gpu_features& gpu) {
  std::map<std::string, int> found;
  count_obstacles(p, gpu, found);
  const auto most = std::ranges::max_element(found, {}, [](const auto& f) { return f.second; });
  return most == found.end() ? "" : printable(most->first);
}

std::string reason(const asked_devices& asked, const plan& p, const device_info& idle, std::string_view users) {
  if (idle.gpu)
    if (std::string obstacle = obstacle_of_most(p, *idle.gpu); !obstacle.empty())
      return obstacle;
  if (!asked.plan_file.empty())
    return fmt::format("{} says so", printable(asked.plan_file));
  return fmt::format("policy {} puts all on {}{}", asked.policy, users,
                     asked.policy == "single" ? "; others, such as heft, share the work" : "");
}

} // namespace

void count_nodes(const plan& p, std::map<std::string, int>& nodes) {
  for (size_t n = 0; n < p.placement.size(); ++n)
    if (const device_info& d = p.devices[p.placement[n]];
        d.kind != device_kind::control && !launches_nothing(p, p.program->nodes[n]))
      ++nodes[d.name];
  for (const planned_body& body : p.bodies)
    count_nodes(*body.compiled, nodes);
}

std::vector<std::string> why_idle(const asked_devices& asked, const plan& p) {
  std::map<std::string, int> used;
  count_nodes(p, used);
  std::vector<std::string> users;
  for (const auto& [device, nodes] : used)
    users.push_back(device);
  const bool with_gpu = std::ranges::any_of(p.devices, [&](const device_info& d) {
    return d.gpu && is_named(asked, d.name) && d.kind != device_kind::control;
  });
  std::vector<std::string> lines;
  for (const device_info& d : p.devices)
    if (!users.empty() && d.kind != device_kind::control && is_named(asked, d.name) && !used.contains(d.name) &&
        (d.gpu || !with_gpu))
      lines.push_back(fmt::format("device '{}' runs no node of this model ({} runs all): {}", d.name,
                                  fmt::join(users, " and "),
                                  reason(asked, p, d, fmt::format("{}", fmt::join(users, " and ")))));
  return lines;
}

} // namespace troupe

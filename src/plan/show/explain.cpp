#include "plan/show/explain.hpp"

#include "base/printable.hpp"
#include "graph/bodies.hpp"
#include "plan/cut/cache_appends.hpp"
#include "plan/estimate/gpu_support.hpp"
#include "plan/place/placement_problem.hpp"
#include "plan/place/policy_library.hpp"
#include "plan/saved_plan.hpp"

#include <algorithm>

namespace troupe {

std::optional<int64_t> bytes_in(const plan& p, const bound_plan* bound, value_id v) {
  const value& info = p.program->values[v];
  if (info.constant)
    return bytes_of(info.type, volume(info.constant->dims));
  if (!bound || p.segment_of_value[v] > bound->segment || !info.dims || holds_objects(info.type))
    return std::nullopt;
  return bytes_of(info.type, volume(bound->dims[v]));
}

std::optional<double> network_seconds(const plan& p, const bound_plan* bound, const transfer& t) {
  const auto bytes = bytes_in(p, bound, t.value);
  if (!bytes || t.route != transfer_route::remote)
    return std::nullopt;
  const auto end = [&](const std::optional<chunk_id>& c) { return c ? &p.devices[p.chunks[*c].device] : nullptr; };
  return network_seconds(static_cast<double>(*bytes), end(t.from), end(t.to));
}

std::string dims_text(const plan& p, const bound_plan* bound, value_id v) {
  const value& info = p.program->values[v];
  if (bound && p.segment_of_value[v] <= bound->segment)
    return to_string(std::span<const int64_t>(bound->dims[v]));
  return info.dims ? printable(to_string(std::span<const dim>(*info.dims))) : "[?]";
}

std::string similar_names(std::span<const std::string> names, std::string_view part) {
  std::string text;
  int shown = 0;
  for (const std::string& name : names)
    if (!part.empty() && shown < 5 && name.find(part) != std::string::npos)
      text += fmt::format("{}'{}'", shown++ ? ", " : "", printable(name));
  return text;
}

tensor_flow flow_of(const plan& p, std::string_view name) {
  const graph& g = *p.program;
  const auto found = std::find_if(g.values.begin(), g.values.end(), [&](const value& v) { return v.name == name; });
  if (found == g.values.end()) {
    std::vector<std::string> names;
    for (const value& v : g.values)
      names.push_back(v.name);
    const std::string similar = similar_names(names, name);
    fail(errc::invalid_argument,
         "the plan has no value '{}'{}; what was fused or folded is gone (without fusion more is there)", name,
         similar.empty() ? "" : "; similar are " + similar);
  }
  tensor_flow flow;
  const auto v = flow.value = static_cast<value_id>(found - g.values.begin());
  flow.maker = p.producer[v];
  flow.storage = p.storage[v];
  for (value_id other = 0; other < static_cast<value_id>(g.values.size()); ++other)
    if (other != v && p.storage[other] == flow.storage && p.producer[other] >= 0 && !is_part(p, other) &&
        !is_part(p, v))
      flow.views.push_back(other);
  for (const chunk& c : p.chunks)
    for (node_id n : c.nodes)
      if (std::count(g.nodes[n].inputs.begin(), g.nodes[n].inputs.end(), v))
        flow.readers.push_back(n);
  for (const transfer& t : p.transfers)
    if (t.value == v)
      flow.moves.push_back(t);
  return flow;
}

namespace {

class reason_finder {
public:
  explicit reason_finder(const plan& p) : p_(p) {
    for (const device_info& d : p.devices)
      if (!d.gpu)
        others_ += d.kind != device_kind::control;
      else if (std::none_of(gpus_.begin(), gpus_.end(), [&](const gpu_features* known) { return *known == *d.gpu; }))
        gpus_.push_back(&*d.gpu);
    if (!gpus_.empty())
      support_.emplace(*p.program);
  }

  placement_reason find(node_id n) {
    const node& call = p_.program->nodes[n];
    const device_info& device = p_.devices[p_.placement[n]];
    if (has_body(call))
      return {"control flow: its bodies have plans of their own", true};
    if (p_.inserted[n] && call.def->converts)
      return {"converts for a device that computes this in float32", true};
    if (p_.inserted[n])
      return {call.def->layouts == layout_support::converting ? "changes the layout for its neighbours"
                                                              : "moves a large value in pieces",
              true};
    if (p_.options.saved)
      return {fmt::format("{} says so", p_.options.saved->source), true};
    if (is_pinned(call, device))
      return {"pinned here"};
    if (device.gpu || gpus_.empty())
      return {p_.devices.size() == 1 ? "the only device" : fmt::format("policy {}", policy_name(p_.options)), true};
    if (const gpu_obstacle obstacle = best_obstacle(n); obstacle != gpu_obstacle::none)
      return {(others_ == 1 ? "only this device can run it: " : "") + describe(obstacle, call)};
    if (device.fallback)
      return {"saves a round trip to a GPU"};
    return {fmt::format("policy {}", policy_name(p_.options)), true};
  }

private:
  bool is_pinned(const node& call, const device_info& device) const {
    return std::any_of(p_.options.pins.begin(), p_.options.pins.end(), [&](const placement_pin& pin) {
      const auto names_it = [&](value_id v) {
        return v != no_value && matches(pin.pattern, p_.program->values[v].name);
      };
      return pin.device == device.name &&
             (matches(pin.pattern, call.name) || std::any_of(call.outputs.begin(), call.outputs.end(), names_it));
    });
  }

  /// Returns why no GPU can run a node; none if one can.
  gpu_obstacle best_obstacle(node_id n) {
    gpu_obstacle found = gpu_obstacle::none;
    for (const gpu_features* gpu : gpus_)
      if (found = support_->obstacle(n, *gpu); found == gpu_obstacle::none)
        break;
    return found;
  }

  const plan& p_;
  std::vector<const gpu_features*> gpus_;
  size_t others_ = 0;
  std::optional<gpu_support> support_;
};

} // namespace

std::vector<placement_reason> placement_reasons(const plan& p) {
  reason_finder finder(p);
  std::vector<placement_reason> reasons;
  reasons.reserve(p.placement.size());
  for (node_id n = 0; n < static_cast<node_id>(p.placement.size()); ++n)
    reasons.push_back(finder.find(n));
  return reasons;
}

std::vector<bool> growing_caches(const plan& p) {
  std::vector<bool> growing(p.program->nodes.size(), false);
  for (const cache_append& a : find_cache_appends(p))
    growing[a.node] = true;
  return growing;
}

} // namespace troupe

#include "plan/place/placement_problem.hpp"

#include "graph/bodies.hpp"
#include "ops/op.hpp"
#include "plan/place/annotated.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace troupe {
namespace {

/// Finds the pin that holds for a name: an exact one, else the last pattern.
class pin_table {
public:
  explicit pin_table(std::span<const placement_pin> pins) {
    for (size_t i = 0; i < pins.size(); ++i)
      if (pins[i].pattern.find_first_of("*?") == std::string::npos)
        exact_[pins[i].pattern] = i;
      else
        patterns_.emplace_back(pins[i].pattern, i);
  }

  /// Returns the index of the pin that holds for one of `names`.
  std::optional<size_t> find(const std::vector<std::string_view>& names) const {
    for (std::string_view name : names)
      if (const auto found = exact_.find(name); found != exact_.end())
        return found->second;
    for (auto p = patterns_.rbegin(); p != patterns_.rend(); ++p)
      if (std::any_of(names.begin(), names.end(), [&](std::string_view name) { return matches(p->first, name); }))
        return p->second;
    return std::nullopt;
  }

private:
  std::unordered_map<std::string_view, size_t> exact_;
  std::vector<std::pair<std::string_view, size_t>> patterns_;
};

std::vector<std::string_view> names_of(const graph& program, const node& n) {
  std::vector<std::string_view> names{n.name};
  for (value_id v : n.outputs)
    if (v != no_value)
      names.push_back(program.values[v].name);
  return names;
}

device_index device_called(std::span<const device_info> devices, const placement_pin& pin) {
  std::string known;
  for (device_index d = 0; d < devices.size(); ++d) {
    if (devices[d].name == pin.device)
      return d;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", devices[d].name);
  }
  fail(errc::invalid_argument, "'{}' is pinned to '{}', which is not one of the devices ({})", pin.pattern, pin.device,
       known);
}

} // namespace

namespace {

bool holds_here(const placement_pin& pin, const graph& g) {
  return std::any_of(g.nodes.begin(), g.nodes.end(), [&](const node& n) {
    const auto names = names_of(g, n);
    return std::any_of(names.begin(), names.end(), [&](std::string_view name) { return matches(pin.pattern, name); });
  });
}

bool holds_in_bodies(const placement_pin& pin, const graph& g) {
  for (const node& n : g.nodes)
    if (has_body(n))
      for (const node_body& body : bodies_of(n))
        if (holds_here(pin, *body.program) || holds_in_bodies(pin, *body.program))
          return true;
  return false;
}

} // namespace

plan_options options_without_bodies(const graph& program, plan_options options) {
  std::erase_if(options.pins,
                [&](const placement_pin& p) { return !holds_here(p, program) && holds_in_bodies(p, program); });
  return options;
}

plan_options options_for_body(const graph& body, plan_options options) {
  options.saved = nullptr; // it is of the outermost graph
  if (!std::exchange(options.budgets, {}).empty())
    options.policy = placement_policy::single; // a body spills for itself, when it is bound
  if (options.policy == placement_policy::split)
    options.policy = placement_policy::single; // what a body reads, and how often it runs, may depend on the data
  std::erase_if(options.pins,
                [&](const placement_pin& p) { return !holds_here(p, body) && !holds_in_bodies(p, body); });
  return options;
}

bool matches(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1; // the star takes one character more
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

placement_problem::placement_problem(const graph& program, std::span<const device_info> devices,
                                     const plan_options& options)
    : program_(program), devices_(devices), options_(options), edges_(adjacency_of(program)),
      has_containers_(std::ranges::any_of(program.values, [](const value& v) { return is_container(v.type); })),
      support_(program, options.expected), work_(program.nodes.size()) {
  expects(options.budgets.empty() || options.budgets.size() == devices.size(), "place: one budget a device is needed");
  for (const bool fallback : {false, true}) {
    for (device_index d = 0; d < devices.size(); ++d)
      if (devices[d].fallback == fallback)
        order_.push_back(d);
    if (!fallback)
      regular_ = order_.size();
  }
  const auto here =
      std::find_if(order_.begin(), order_.end(), [&](device_index d) { return in_process_memory(devices[d]); });
  host_ = here == order_.end() ? order_.front() : *here;
  for (device_index d = 0; d < devices.size(); ++d) {
    // Equal GPUs share one table of the nodes that they can run.
    device_index same = 0;
    while (same < d && !(devices[same].gpu == devices[d].gpu))
      ++same;
    features_of_.push_back(same);
  }
  can_run_.resize(devices.size());
  measured_ = std::any_of(devices.begin(), devices.end(), [](const device_info& d) { return d.profile.measured; });
  pin(options.pins);
  if (options.budgets.empty()) // else the plan has to fit before all
    follow_annotations();
  describe_devices();
  describe_values();
  describe_edges();
  set_questions();
  set_move_questions();
}

bool placement_problem::allows(node_id n, device_index d) {
  if (is_kept_from(devices_[d]))
    return false;
  if (pinned(n) != no_device)
    return pinned_[n] == d;
  if (has_body(program_.nodes[n]))
    return d == host_;
  if (!devices_[d].gpu)
    return true;
  std::vector<int8_t>& known = can_run_[features_of_[d]];
  if (known.empty())
    known.assign(node_count(), -1);
  if (known[n] < 0)
    known[n] = support_.obstacle(n, *devices_[d].gpu) == gpu_obstacle::none ? 1 : 0;
  return known[n] == 1;
}

std::string placement_problem::why_not(node_id n) {
  std::string names;
  for (device_index d : order_)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", devices_[d].name);
  const node& call = program_.nodes[n];
  const device_info& last = devices_[order_.back()];
  return fmt::format("{} cannot run on any of the devices ({}): {}; add a CPU device", describe(call), names,
                     last.gpu || is_kept_from(last) ? obstacle(n, last) : "pins and policy leave none");
}

std::string placement_problem::obstacle(node_id n, const device_info& device) {
  if (is_kept_from(device))
    return "the model has sequences or optionals, which do not leave this host, nor does what is computed beside them";
  return describe(support_.obstacle(n, *device.gpu), program_.nodes[n]);
}

int64_t placement_problem::bytes(value_id v) {
  return static_cast<int64_t>(std::min(byte_count(program_.values[v].type, dims(v)), 1e18));
}

const node_work& placement_problem::work(node_id n) {
  std::optional<node_work>& known = work_[n];
  if (!known) {
    const node& call = program_.nodes[n];
    const auto dims_of = [&](value_id v) -> const shape& { return dims(v); };
    const call_shapes shapes = shapes_of(program_, call, dims_of);
    known = work_of(call, shapes);
    if (measured_ && known->launches)
      known->identity = std::make_shared<const node_identity>(identity_of(program_, call, shapes));
  }
  return *known;
}

double placement_problem::seconds(node_id n, device_index d) {
  const node_work& w = work(n);
  return troupe::seconds(w, devices_[d].profile) + (w.launches ? devices_[d].profile.barrier_s : 0);
}

int64_t placement_problem::budget(device_index d) const {
  return options_.budgets.empty() ? devices_[d].memory_bytes : options_.budgets[d];
}

void placement_problem::pin(std::span<const placement_pin> pins) {
  if (pins.empty())
    return;
  std::vector<device_index> device_of;
  for (const placement_pin& p : pins)
    device_of.push_back(device_called(devices_, p));
  const pin_table table(pins);
  std::vector<bool> used(pins.size(), false);
  std::vector<device_index> pinned(node_count(), no_device);
  for (node_id n = 0; n < static_cast<node_id>(node_count()); ++n) {
    const node& call = program_.nodes[n];
    const std::optional<size_t> found = table.find(names_of(program_, call));
    if (!found)
      continue;
    used[*found] = true;
    pinned[n] = device_of[*found];
    const device_info& device = devices_[pinned[n]];
    if (!allows(n, pinned[n]))
      fail(errc::unsupported, "{} is pinned to '{}', which cannot run it: {}", describe(call), device.name,
           obstacle(n, device));
  }
  for (size_t i = 0; i < pins.size(); ++i)
    if (!used[i])
      fail(errc::invalid_argument,
           "the pin '{}' holds for no node of the rewritten model (or for none that another pin leaves); `troupe plan` "
           "shows their names",
           pins[i].pattern);
  pinned_ = std::move(pinned);
}

void placement_problem::follow_annotations() {
  const followed_configuration c = followed(program_, devices_);
  if (!c.from)
    return;
  if (pinned_.empty())
    pinned_.assign(node_count(), no_device);
  for (node_id n = 0; n < static_cast<node_id>(node_count()); ++n) {
    const node_annotation* a = annotation_of(c, program_, program_.nodes[n]);
    const auto stated = a ? stated_device(c, *a) : std::nullopt;
    if (stated && allows(n, *stated)) // a pin of the caller's allows no other device
      pinned_[n] = *stated;
  }
  if (options_.policy == placement_policy::single)
    follow_neighbours();
}

void placement_problem::follow_neighbours() {
  const auto follow = [&](node_id n, node_id neighbour) {
    if (neighbour >= 0 && pinned_[n] == no_device && pinned_[neighbour] != no_device && allows(n, pinned_[neighbour]))
      pinned_[n] = pinned_[neighbour];
  };
  for (node_id n = 0; n < static_cast<node_id>(node_count()); ++n)
    for (value_id v : program_.nodes[n].inputs)
      follow(n, v == no_value ? -1 : edges_.producer[v]);
  for (auto n = static_cast<node_id>(node_count()); n-- > 0;)
    for (value_id v : program_.nodes[n].outputs)
      if (v != no_value)
        for (node_id reader : edges_.consumers[v])
          follow(n, reader);
}

} // namespace troupe

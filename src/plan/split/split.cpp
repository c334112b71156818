#include "plan/split/split.hpp"

#include "base/first_texts.hpp"
#include "base/hash.hpp"
#include "graph/bodies.hpp"
#include "plan/place/annotated.hpp"
#include "plan/place/placement.hpp"
#include "plan/split/splitter.hpp"

#include <algorithm>
#include <map>

namespace troupe {
namespace {

hash128 hash_of(const split_decision& d) {
  hasher h;
  for (const node_cut& n : d.nodes) {
    h.add(n.is);
    for (const dim& b : n.bounds)
      h.add(b.to_string());
    for (size_t i = 0; n.axis && i < n.axis->inputs.size(); ++i)
      h.add(n.axis->inputs[i] ? n.axis->inputs[i]->axis + 1 : 0);
  }
  return h.digest();
}

/// Returns what the team has of values that are not whole, in words.
std::string states_of(const split_decision& d) {
  std::map<size_t, size_t> along; // by dim
  size_t partial = 0;
  for (const value_cut& v : d.values) {
    along[v.axis] += v.is == value_cut::kind::parts;
    partial += v.is == value_cut::kind::partial;
  }
  std::string text;
  for (const auto& [axis, count] : along)
    if (count > 0)
      text += fmt::format("{}{} along dim {}", text.empty() ? "values in parts: " : ", ", count, axis);
  return partial > 0 ? fmt::format("{}{}partial results: {}", text, text.empty() ? "" : ", ", partial) : text;
}

std::string summary_of(const split_decision& d, const split_team& team, std::span<const device_info> devices) {
  std::string names;
  for (size_t i = 0; i < team.size(); ++i)
    names += fmt::format("{}{} ({}/{})", names.empty() ? "" : ", ", devices[team.devices[i]].name,
                         team.begin[i + 1] - team.begin[i], split_team::steps);
  const auto cut = std::ranges::count(d.nodes, node_cut::kind::cut, &node_cut::is);
  return fmt::format("split over {}, {} of {} nodes cut, {:.0f} % of the predicted work, {}{}", names, cut,
                     d.nodes.size(), 100 * d.cut_seconds / d.seconds, states_of(d),
                     d.once.empty() ? "" : ", only once: " + first_of(d.once));
}

/// Moves nodes whose parts their device cannot run to one that can.
void move_refused(split_program& s, std::span<const device_info> devices, plan_options options) {
  options.pins.clear(); // they hold for nodes that have not been cut
  placement_problem problem(s.program, devices, options);
  for (node_id n = 0; n < static_cast<node_id>(s.placement.size()); ++n) {
    if (has_body(s.program.nodes[n]) || problem.allows(n, s.placement[n]))
      continue;
    device_index d = 0;
    while (d < devices.size() && !problem.allows(n, d))
      ++d;
    if (d == devices.size())
      fail(errc::unsupported, "no device can run {}", describe(s.program.nodes[n]));
    s.placement[n] = d;
  }
}

/// The devices, of which all but some are fallback ones.
std::vector<device_info> preferring(std::span<const device_info> devices, std::span<const device_index> some) {
  std::vector<device_info> ranked(devices.begin(), devices.end());
  for (device_index d = 0; d < ranked.size(); ++d)
    ranked[d].fallback = std::ranges::find(some, d) == some.end();
  return ranked;
}

} // namespace

std::vector<int> split_dims() {
  return {-1, 0, 1, 2, 3};
}

split_program on_one_device(const graph& program, std::span<const device_info> devices, const plan_options& options,
                            const split_team& team) {
  std::vector<device_index> fastest;
  int64_t most = 0;
  for (size_t i = 0; i < team.size(); ++i)
    if (const int64_t share = team.begin[i + 1] - team.begin[i]; share > most) {
      most = share;
      fastest = {team.devices[i]};
    }
  return {program, place(program, preferring(devices, fastest), options), {}, std::nullopt, {}, {}};
}

std::optional<split_team> annotated_team(const graph& program, std::span<const device_info> devices,
                                         const plan_options& options) {
  const followed_configuration c = followed(program, devices);
  if (!c.from || c.from->team.empty())
    return std::nullopt;
  std::vector<device_index> named;
  for (const int64_t i : c.from->team)
    named.push_back(c.devices[static_cast<size_t>(i)]);
  return team_for(program, preferring(devices, named), options);
}

placed_decision decide_placed(const graph& program, std::span<const device_info> devices, const plan_options& options,
                              const split_team& team, int along) {
  const std::vector<device_info> ranked = preferring(devices, team.devices);
  std::vector<device_index> home = place(program, ranked, options);
  placement_problem problem(program, ranked, options);
  split_decision decision = decide_split(problem, home, team, along);
  return {std::move(decision), std::move(home)};
}

std::optional<split_program> split(const graph& program, std::span<const device_info> devices,
                                   const plan_options& options, const split_team& team, int along) {
  auto [decision, home] = decide_placed(program, devices, options, team, along);
  if (!decision.has_cuts())
    return std::nullopt;
  split_program made{program,
                     std::move(home),
                     std::move(decision.nonnegative),
                     plan_split{along, {}, team.begin},
                     summary_of(decision, team, devices),
                     hash_of(decision)};
  for (const device_index d : team.devices)
    made.how->team.push_back(devices[d].name);
  apply_split(made.program, made.placement, devices, team, decision);
  move_refused(made, devices, options);
  return made;
}

} // namespace troupe

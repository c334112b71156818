#include "plan/split/team.hpp"

#include "graph/bodies.hpp"
#include "plan/place/placement_problem.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

/// More devices than this do not run one request together.
constexpr size_t largest_team = 16;
/// A device whose share is smaller is left out.
constexpr double least_share = 1.0 / 32;

} // namespace

split_team team_for(const graph& program, std::span<const device_info> devices, const plan_options& options) {
  placement_problem problem(program, devices, options);
  std::vector<std::pair<device_index, double>> speeds;
  for (device_index d = 0; d < devices.size() && speeds.size() < largest_team; ++d) {
    if (devices[d].fallback)
      continue;
    double seconds = 0;
    for (node_id n = 0; n < static_cast<node_id>(problem.node_count()); ++n)
      if (!has_body(program.nodes[n]) && program.nodes[n].def->cost && problem.allows(n, d))
        seconds += problem.seconds(n, d);
    if (seconds > 0)
      speeds.emplace_back(d, 1 / seconds);
  }
  const auto total = [&] {
    double sum = 0;
    for (const auto& [d, speed] : speeds)
      sum += speed;
    return sum;
  };
  const double all = total();
  std::erase_if(speeds, [&](const auto& s) { return s.second < least_share * all; });
  const double kept = total();
  split_team team;
  double before = 0;
  for (const auto& [d, speed] : speeds) {
    team.devices.push_back(d);
    team.begin.push_back(std::lround(before / kept * split_team::steps));
    before += speed;
  }
  team.begin.push_back(split_team::steps);
  return team;
}

split_team saved_team(const plan_split& how, std::span<const device_info> devices, const std::string& source) {
  split_team team{{}, how.begin};
  for (const std::string& name : how.team) {
    const auto found = std::ranges::find(devices, name, &device_info::name);
    if (found == devices.end() || std::ranges::count(how.team, name) > 1)
      fail(errc::invalid_plan, "{}: the plan is split for the device '{}', which is {}", source, name,
           found == devices.end() ? "not open" : "named twice");
    team.devices.push_back(static_cast<device_index>(found - devices.begin()));
  }
  const bool ascends = how.begin.size() == how.team.size() + 1 && how.team.size() > 1 && how.begin.front() == 0 &&
                       how.begin.back() == split_team::steps && std::ranges::is_sorted(how.begin);
  if (!ascends)
    fail(errc::invalid_plan, "{}: the shares of a split do not ascend from 0 to {}, one for each device", source,
         split_team::steps);
  return team;
}

} // namespace troupe

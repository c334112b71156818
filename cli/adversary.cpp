#include "cli/adversary.hpp"

#include "cli/command.hpp"
#include "plan/place/policies.hpp"
#include "schedules/adversary.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>

namespace troupe::cli {
namespace {

constexpr uint32_t most_for_optimal = 8; // which takes no time to speak of up to here

using makespans = std::vector<std::pair<double, std::string_view>>; // ascending

makespans all_makespans(const cost_matrix& costs) {
  makespans all;
  for (const policy_row& row : policies())
    if (!row.small_only || std::max(costs.tasks, costs.devices) <= most_for_optimal)
      all.emplace_back(makespan_by(row.name, costs), row.name);
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return all;
}

void print(const adverse_instance& found, bool as_json) {
  const cost_matrix costs = costs_of(found.instance);
  const double ratio = makespan_by(found.loser, costs) / makespan_by(found.winner, costs);
  const makespans all = all_makespans(costs);
  if (as_json) {
    nlohmann::json j = nlohmann::json::parse(to_json(found));
    j["ratio"] = ratio;
    for (const auto& [makespan, name] : all)
      j["makespans"][std::string(name)] = makespan;
    std::cout << j.dump(2) << '\n';
    return;
  }
  fmt::print("{} takes {:.3f} times as long as {}: {} tasks, {} edges, {} devices, seed {}\n\n{:<14} {:>9} {:>12}\n",
             found.loser, ratio, found.winner, costs.tasks, costs.edges.size(), costs.devices, found.seed, "policy",
             "makespan", "of the best");
  for (const auto& [makespan, name] : all)
    fmt::print("{:<14} {:>9.4f} {:>12.3f}\n", name, makespan, makespan / all[0].first);
}

} // namespace

void search_instance(const adversary_arguments& args, bool as_json) {
  for (const std::string& name : args.policies)
    parse_policy(name);
  const adverse_instance found = find_adverse(args.policies.at(0), args.policies.at(1), args.seed);
  if (!args.save.empty())
    write_and_tell(args.save, to_json(found), "instance");
  print(found, as_json);
}

void print_instance(std::string_view text, bool as_json) {
  print(parse_instance(text), as_json);
}

} // namespace troupe::cli

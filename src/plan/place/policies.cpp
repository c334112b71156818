#include "plan/place/policies.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr auto rows = std::to_array<policy_row>({
    {placement_policy::single, "single", "everything on the first device that can run it", place_single},
    {placement_policy::round_robin, "round-robin", "alternating by node", place_round_robin},
    {placement_policy::weighted, "weighted", "contiguous shares of equal predicted time", place_weighted, true},
    {placement_policy::greedy_memory, "greedy-memory", "one device filled before the next, GPUs first",
     place_greedy_memory, true},
    {placement_policy::heft, "heft", "earliest predicted finish, moves included; one device where that is faster",
     place_heft, true, true, true},
    {placement_policy::dmda, "dmda", "earliest predicted finish in the graph's order, without looking ahead",
     place_dmda, true, true},
    {placement_policy::pipeline, "pipeline", "contiguous stages, one a device, the slowest as fast as can be",
     place_pipeline, true},
});

} // namespace

std::span<const policy_row> policies() {
  return rows;
}

const policy_row& row_of(placement_policy policy) {
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const policy_row& r) { return r.policy == policy; });
  expects(row != rows.end(), "there is no such placement policy");
  return *row;
}

placement_policy parse_policy(std::string_view name) {
  std::string known;
  for (const policy_row& row : rows) {
    if (row.name == name)
      return row.policy;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  }
  fail(errc::invalid_argument, "unknown policy '{}'; known are: {}", name, known);
}

std::string_view to_string(placement_policy policy) {
  return row_of(policy).name;
}

} // namespace troupe

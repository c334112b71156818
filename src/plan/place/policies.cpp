#include "plan/place/policies.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

/// A built-in policy in a plug-in's form: its errors are reported.
template <void (*Place)(const scheduling_problem&, schedule&)>
int32_t built_in(const policy_problem* asked, policy_result* result) noexcept {
  try {
    const scheduling_problem problem(*asked);
    schedule made{std::vector<uint32_t>(problem.task_count(), policy_none), {}};
    Place(problem, made);
    for (task_id n = 0; n < problem.task_count(); ++n) {
      result->device[n] = made.device[n];
      if (result->start)
        result->start[n] = made.start.empty() ? std::nan("") : made.start[n];
    }
    return 0;
  } catch (const error& e) {
    asked->report(asked->context, static_cast<int32_t>(e.code()), e.what());
  } catch (const std::exception& e) {
    asked->report(asked->context, static_cast<int32_t>(errc::internal), e.what());
  }
  return 1;
}

// Designated, since a row's flags say little by their position.
constexpr auto rows = std::to_array<policy_row>({
    {.policy = placement_policy::single,
     .name = "single",
     .what = "everything on the first device that can run it",
     .place = built_in<place_single>},
    {.policy = placement_policy::round_robin,
     .name = "round-robin",
     .what = "alternating by node",
     .place = built_in<place_round_robin>},
    {.policy = placement_policy::weighted,
     .name = "weighted",
     .what = "contiguous shares of equal predicted time",
     .place = built_in<place_weighted>,
     .uses_cost = true},
    {.policy = placement_policy::greedy_memory,
     .name = "greedy-memory",
     .what = "one device filled before the next, GPUs first",
     .place = built_in<place_greedy_memory>,
     .uses_cost = true},
    {.policy = placement_policy::heft,
     .name = "heft",
     .what = "earliest predicted finish, moves included; one device where that is faster",
     .place = built_in<place_heft>,
     .uses_cost = true,
     .by_finish = true,
     .or_single = true},
    {.policy = placement_policy::dmda,
     .name = "dmda",
     .what = "what is ready first, where it should finish first with its moves, without looking ahead",
     .place = built_in<place_dmda>,
     .uses_cost = true,
     .by_finish = true},
    {.policy = placement_policy::pipeline,
     .name = "pipeline",
     .what = "contiguous stages, one a device, the slowest as fast as can be",
     .place = built_in<place_pipeline>,
     .uses_cost = true},
    {.policy = placement_policy::peft,
     .name = "peft",
     .what = "earliest predicted finish, with the best that can follow",
     .place = built_in<place_peft>,
     .uses_cost = true,
     .by_finish = true},
    {.policy = placement_policy::cpop,
     .name = "cpop",
     .what = "the longest path on one device, the rest by earliest finish",
     .place = built_in<place_cpop>,
     .uses_cost = true,
     .by_finish = true},
    {.policy = placement_policy::min_min,
     .name = "min-min",
     .what = "of what is ready, what can finish first of all",
     .place = built_in<place_min_min>,
     .uses_cost = true,
     .by_finish = true},
    {.policy = placement_policy::local_search,
     .name = "local-search",
     .what = "heft, improved by moving nodes; one device where that is faster",
     .place = built_in<place_local_search>,
     .uses_cost = true,
     .by_finish = true,
     .or_single = true},
    {.policy = placement_policy::dls,
     .name = "dls",
     .what = "of what is ready, the pair of node and device of the highest level: urgency, start, speed",
     .place = built_in<place_dls>,
     .uses_cost = true,
     .by_finish = true},
    {.policy = placement_policy::split,
     .name = "split",
     .what = "nodes cut along an axis, a part on each device; one device where that is faster",
     .place = built_in<place_single>, // of what is not cut; tasks cannot be
     .uses_cost = true,
     .cuts_nodes = true},
    {.policy = placement_policy::lookahead,
     .name = "lookahead",
     .what = "as heft, and what reads a node next counts, too",
     .place = built_in<place_lookahead>,
     .uses_cost = true,
     .by_finish = true},
    {.policy = placement_policy::iheft,
     .name = "iheft",
     .what = "as heft, but a node may wait for its fastest device",
     .place = built_in<place_iheft>,
     .uses_cost = true,
     .by_finish = true},
    {.policy = placement_policy::hbmct,
     .name = "hbmct",
     .what = "independent nodes in groups, each balanced by moving nodes",
     .place = built_in<place_hbmct>,
     .uses_cost = true,
     .by_finish = true},
    {.policy = placement_policy::dcp,
     .name = "dcp",
     .what = "the node on the longest path as it is by then, with its critical reader",
     .place = built_in<place_dcp>,
     .uses_cost = true,
     .by_finish = true},
    {.policy = placement_policy::optimal,
     .name = "optimal",
     .what = "the shortest schedule of all; up to 14 nodes",
     .place = built_in<place_optimal>,
     .uses_cost = true,
     .by_finish = true,
     .small_only = true},
});

/// In no list: what it does is the plug-in's.
constexpr policy_row plug_in_row{.policy = placement_policy::plug_in,
                                 .name = "plug-in",
                                 .what = "what a shared library says",
                                 .place = nullptr,
                                 .uses_cost = true,
                                 .by_finish = true};

} // namespace

std::span<const policy_row> policies() {
  return rows;
}

const policy_row& row_of(placement_policy policy) {
  if (policy == placement_policy::plug_in)
    return plug_in_row;
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

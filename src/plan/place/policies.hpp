// Placement policies: pure, deterministic functions from a problem to a device for every node. One file each in policies/;
// the table in policies.cpp gives them their names.
//
// Every policy puts a node only if `placement_problem::allows` it, and on a fallback device only if no regular device
// can run it (`greedy_memory` also if none has room).
#pragma once

#include "plan/place/placement_problem.hpp"

namespace troupe {

using placed_nodes = std::vector<device_index>; // by node

/// A row of the table of policies.
struct policy_row {
  placement_policy policy;
  std::string_view name; // on the command line
  std::string_view what; // it does, for people
  placed_nodes (*place)(placement_problem&);
  /// Whether it counts on predicted times or bytes, so that expected dims matter.
  bool uses_cost;
};

/// Returns all policies, in the order of `placement_policy`.
std::span<const policy_row> policies();
const policy_row& row_of(placement_policy policy);

/// Returns the policy called `name`; throws `errc::invalid_argument`, listing all, for others.
placement_policy parse_policy(std::string_view name);
std::string_view to_string(placement_policy policy);

placed_nodes place_single(placement_problem& problem);
placed_nodes place_round_robin(placement_problem& problem);
placed_nodes place_weighted(placement_problem& problem);
placed_nodes place_greedy_memory(placement_problem& problem);
placed_nodes place_heft(placement_problem& problem);
placed_nodes place_dmda(placement_problem& problem);
placed_nodes place_pipeline(placement_problem& problem);

} // namespace troupe

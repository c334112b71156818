// Placement policies: pure, deterministic functions from a problem to a device for every task. One file each in
// policies/; the table in policies.cpp gives them their names. They see plain structs (troupe/policy.hpp), as plug-ins
// do, and so schedule models and plain task graphs alike.
//
// Every policy puts a task only where it is allowed, and on a fallback device only if no regular device
// can run it (`greedy_memory` also if none has room).
#pragma once

#include "plan/place/scheduling_problem.hpp"
#include "troupe/options.hpp"

#include <string_view>

namespace troupe {

/// A row of the table of policies.
struct policy_row {
  placement_policy policy;
  std::string_view name; // on the command line
  std::string_view what; // it does, for people
  place_function place;
  /// Whether it counts on predicted times or bytes, so that expected dims matter.
  bool uses_cost = false;
  /// Whether it places by when tasks would end, so that measured times make it better.
  bool by_finish = false;
  /// Whether `make_plan` takes everything on one device instead where that is predicted to be faster.
  bool or_single = false;
  /// Whether `make_plan` cuts nodes along axes (plan/split).
  bool cuts_nodes = false;
  /// Whether it refuses all but small graphs.
  bool small_only = false;
};

/// Returns all built-in policies, in the order of `placement_policy`.
std::span<const policy_row> policies();
/// Returns a policy's row; that of `plug_in` has no function.
const policy_row& row_of(placement_policy policy);

/// Returns the policy called `name`; throws `errc::invalid_argument`, listing all, for others.
placement_policy parse_policy(std::string_view name);
std::string_view to_string(placement_policy policy);

// Each gives every task a device, or throws.
void place_single(const scheduling_problem& problem, schedule& made);
void place_round_robin(const scheduling_problem& problem, schedule& made);
void place_weighted(const scheduling_problem& problem, schedule& made);
void place_greedy_memory(const scheduling_problem& problem, schedule& made);
void place_heft(const scheduling_problem& problem, schedule& made);
void place_dmda(const scheduling_problem& problem, schedule& made);
void place_pipeline(const scheduling_problem& problem, schedule& made);
void place_peft(const scheduling_problem& problem, schedule& made);
void place_cpop(const scheduling_problem& problem, schedule& made);
void place_min_min(const scheduling_problem& problem, schedule& made);
void place_local_search(const scheduling_problem& problem, schedule& made);
void place_dls(const scheduling_problem& problem, schedule& made);
void place_lookahead(const scheduling_problem& problem, schedule& made);
void place_iheft(const scheduling_problem& problem, schedule& made);
void place_hbmct(const scheduling_problem& problem, schedule& made);
void place_dcp(const scheduling_problem& problem, schedule& made);
void place_optimal(const scheduling_problem& problem, schedule& made);

} // namespace troupe

// Shared by tests of policies on plain task graphs.
#pragma once

#include "plan/place/policies.hpp"
#include "schedules/cost_matrix.hpp"

namespace troupe::testing {

/// Returns the makespan of the schedule of a policy, by the function that `--policy NAME` calls; throws if the schedule
/// is invalid.
inline double makespan_by(std::string_view policy, const cost_matrix& costs) {
  matrix_problem problem(costs);
  return makespan_of(problem.asked(), timed(problem.asked(), problem.run(row_of(parse_policy(policy)).place)));
}

} // namespace troupe::testing

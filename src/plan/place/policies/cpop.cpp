// Critical path on a processor (Topcuoglu, Hariri, Wu, "Performance-effective and low-complexity task scheduling for
// heterogeneous computing", IEEE TPDS 13(3), 2002, section 4.3).
//
// A task's priority is the length of the longest path through it, by mean times. The tasks of one critical path all go
// to the device that runs them in the least time; the others, the highest priority of those that are ready first, to
// the device that would finish them first. A task of the path that its device may not run counts as one of the others;
// the device is one that may run most of the path.
#include "plan/place/earliest_finish.hpp"
#include "plan/place/mean_times.hpp"
#include "plan/place/policies.hpp"
#include "plan/place/ready_tasks.hpp"

#include <utility>

namespace troupe {
namespace {

/// Returns one longest path, from a task without predecessors to one without successors.
std::vector<task_id> critical_path(const scheduling_problem& problem, std::span<const double> priority) {
  std::vector<task_id> path;
  task_id at = policy_none;
  const auto take_greater = [&](task_id n) {
    if (at == policy_none || priority[n] > priority[at])
      at = n;
  };
  ready_tasks(problem).begin(take_greater);
  while (at != policy_none) {
    const task_id last = path.emplace_back(std::exchange(at, policy_none));
    for (uint32_t v : problem.outputs(last))
      for (task_id reader : problem.readers(v))
        take_greater(reader);
  }
  return path;
}

/// Returns the regular device that runs a path in the least time, of those that may run most of it.
uint32_t device_for(const scheduling_problem& problem, std::span<const task_id> path) {
  uint32_t best = policy_none;
  std::pair<size_t, double> least;
  for (size_t i = 0; i < problem.regular_count(); ++i) {
    const uint32_t d = problem.order()[i];
    std::pair<size_t, double> here{0, 0};
    for (task_id n : path)
      if (problem.allows(n, d))
        here.second += problem.seconds(n, d);
      else
        ++here.first;
    if (best == policy_none || here < least) {
      best = d;
      least = here;
    }
  }
  return best;
}

} // namespace

void place_cpop(const scheduling_problem& problem, schedule& made) {
  const std::vector<double> mean = mean_seconds(problem);
  std::vector<double> priority = upward_ranks(problem, mean);
  const std::vector<double> before = downward_ranks(problem, mean);
  for (task_id n = 0; n < problem.task_count(); ++n)
    priority[n] += before[n];
  const std::vector<task_id> path = critical_path(problem, priority);
  const uint32_t home = device_for(problem, path);
  std::vector<bool> is_critical(problem.task_count(), false);
  for (task_id n : path)
    is_critical[n] = home != policy_none && problem.allows(n, home);
  earliest_finish schedule(problem);
  const auto place = [&](task_id n) {
    if (is_critical[n])
      schedule.place_on(n, home);
    else
      schedule.place(n);
  };
  place_greatest_first(
      problem, [&](task_id n) { return priority[n]; }, place);
  schedule.take(made);
}

} // namespace troupe

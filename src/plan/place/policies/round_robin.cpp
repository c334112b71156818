// Alternating by task: the most that can move between devices. For tests and experiments; never fast.
#include "plan/place/policies.hpp"

namespace troupe {

void place_round_robin(const scheduling_problem& problem, schedule& made) {
  size_t next = 0;
  for (task_id n = 0; n < problem.task_count(); ++n) {
    const size_t at = problem.find(n, next);
    made.device[n] = problem.order()[at];
    if (at < problem.regular_count())
      next = (at + 1) % problem.regular_count();
  }
}

} // namespace troupe

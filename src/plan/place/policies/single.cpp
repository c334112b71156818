// Everything on the first device that can run it: the least that moves between devices, and what every other policy has
// to beat.
#include "plan/place/policies.hpp"

namespace troupe {

void place_single(const scheduling_problem& problem, schedule& made) {
  for (task_id n = 0; n < problem.task_count(); ++n)
    made.device[n] = problem.order()[problem.find(n, 0)];
}

} // namespace troupe

// Heterogeneous earliest finish time (Topcuoglu, Hariri, Wu 2002): tasks in the order of their distance to the end of
// the graph, each on the device that would finish it first (earliest_finish.hpp).
//
// For a model the result is a plan's first draft: `make_plan` compares it with `single` by prediction and keeps the
// better.
#include "plan/place/earliest_finish.hpp"
#include "plan/place/mean_times.hpp"
#include "plan/place/policies.hpp"

namespace troupe {

void place_heft(const scheduling_problem& problem, schedule& made) {
  earliest_finish schedule(problem);
  for (task_id n : by_rank(upward_ranks(problem, mean_seconds(problem))))
    schedule.place(n);
  schedule.take(made);
}

} // namespace troupe

// In the graph's order, each task on the device that would finish it first: what StarPU calls dmda ("deque model data aware"; Augonnet,
// Thibault, Namyst, Wacrenier 2011). Unlike `heft` it does not look ahead: what is ready first is placed first.
#include "plan/place/earliest_finish.hpp"
#include "plan/place/policies.hpp"

namespace troupe {

int32_t place_dmda(const policy_problem* asked, policy_result* result) {
  return answer_policy(asked, result, [](const scheduling_problem& problem, schedule& made) {
    earliest_finish schedule(problem);
    for (task_id n = 0; n < problem.task_count(); ++n)
      schedule.place(n);
    schedule.take(made);
  });
}

} // namespace troupe

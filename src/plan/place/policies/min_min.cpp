// Min-min (Ibarra, Kim, "Heuristic algorithms for scheduling independent tasks on nonidentical processors", JACM 24(2),
// 1977; for graphs: of the tasks that are ready): the task that can finish first of all goes next, to the device where
// it does.
//
// A task's earliest finish never becomes earlier while others are placed. So an old figure is a lower bound, and only
// the tasks at the top of the queue are asked again.
#include "plan/place/earliest_finish.hpp"
#include "plan/place/policies.hpp"
#include "plan/place/ready_tasks.hpp"

#include <algorithm>
#include <limits>
#include <queue>

namespace troupe {

void place_min_min(const scheduling_problem& problem, schedule& made) {
  earliest_finish schedule(problem);
  ready_tasks ready(problem);
  std::priority_queue<keyed_task> next; // by the negative finish
  std::vector<uint32_t> devices;
  const auto earliest = [&](task_id n) {
    problem.candidates(n, devices);
    double finish = std::numeric_limits<double>::infinity();
    for (uint32_t d : devices)
      finish = std::min(finish, schedule.slot_on(n, d).finish);
    return finish;
  };
  const auto add = [&](task_id n) { next.push({-earliest(n), n}); };
  ready.begin(add);
  while (!next.empty()) {
    const task_id n = next.top().task;
    next.pop();
    const keyed_task now{-earliest(n), n};
    if (!next.empty() && now < next.top()) {
      next.push(now);
      continue;
    }
    schedule.place(n);
    ready.complete(n, add);
  }
  schedule.take(made);
}

} // namespace troupe

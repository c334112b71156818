// Min-min (Ibarra, Kim, "Heuristic algorithms for scheduling independent tasks on nonidentical processors", JACM 24(2),
// 1977; for graphs: of the tasks that are ready): the task that can finish first of all goes next, to the device where
// it does.
#include "plan/place/earliest_finish.hpp"
#include "plan/place/policies.hpp"
#include "plan/place/ready_tasks.hpp"

#include <algorithm>
#include <limits>

namespace troupe {

void place_min_min(const scheduling_problem& problem, schedule& made) {
  earliest_finish schedule(problem);
  std::vector<uint32_t> devices;
  const auto soonest = [&](task_id n) {
    problem.candidates(n, devices);
    double finish = std::numeric_limits<double>::infinity();
    for (uint32_t d : devices)
      finish = std::min(finish, schedule.slot_on(n, d).finish);
    return -finish;
  };
  place_greatest_first(problem, soonest, [&](task_id n) { schedule.place(n); });
  schedule.take(made);
}

} // namespace troupe

// Dynamic level scheduling (Sih, Lee, "A compile-time scheduling heuristic for interconnection-constrained
// heterogeneous processor architectures", IEEE TPDS 4(2), 1993): of the tasks that are ready and the devices, the pair
// of the greatest level goes next.
//
//     level(t, d) = seconds from t to the end of the graph by mean times, moves aside − earliest start of t on d
//                   + mean seconds of t − seconds of t on d
//
// Nothing is put into a pause, so a start never becomes earlier. The paper takes medians for means.
#include "plan/place/earliest_finish.hpp"
#include "plan/place/mean_times.hpp"
#include "plan/place/policies.hpp"
#include "plan/place/ready_tasks.hpp"

#include <algorithm>

namespace troupe {

void place_dls(const scheduling_problem& problem, schedule& made) {
  const std::vector<double> mean = mean_seconds(problem), to_end = upward_ranks(problem, mean, false);
  earliest_finish schedule(problem);
  struct choice {
    uint32_t device = policy_none;
    double start = 0, level = 0;
  };
  std::vector<uint32_t> devices;
  const auto best = [&](task_id n) {
    problem.candidates(n, devices);
    choice c;
    for (uint32_t d : devices) {
      const double start = std::max(schedule.ready_at(n, d), schedule.end_of(d));
      const double level = to_end[n] - start + mean[n] - problem.seconds(n, d);
      if (c.device == policy_none || level > c.level)
        c = {d, start, level};
    }
    return c;
  };
  const auto place = [&](task_id n) {
    const choice c = best(n);
    schedule.append(n, c.device, c.start);
  };
  place_greatest_first(
      problem, [&](task_id n) { return best(n).level; }, place);
  schedule.take(made);
}

} // namespace troupe

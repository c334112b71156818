// Predict earliest finish time (Arabnejad, Barbosa, "List scheduling algorithm for heterogeneous systems by an
// optimistic cost table", IEEE TPDS 25(3), 2014).
//
// The optimistic cost table holds, for each task and device, the seconds from the task's end to the end of the graph if
// every later task had the best device for itself:
//
//     OCT(t, d) = max over successors s of min over devices e of (OCT(s, e) + seconds(s, e) + (d = e ? 0 : mean move))
//
// Of the tasks that are ready, the one with the greatest mean goes next, to the device of the least earliest finish +
// OCT: a task is not given to the device that would end it first if what follows is far from there. Time and memory:
// tasks · devices, and a pass over the edges for each device.
#include "plan/place/earliest_finish.hpp"
#include "plan/place/policies.hpp"
#include "plan/place/ready_tasks.hpp"

#include <algorithm>
#include <limits>

namespace troupe {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

class optimistic_costs {
public:
  explicit optimistic_costs(const scheduling_problem& problem)
      : devices_(problem.device_count()), costs_(static_cast<size_t>(problem.task_count()) * problem.device_count(), 0),
        mean_(problem.task_count(), 0) {
    std::vector<double> through(devices_); // of a successor: its cost from its start to the end, by device
    // Successors first. What a successor costs is taken once for all values that it reads of whom: pushed to its
    // makers.
    for (task_id n = problem.task_count(); n-- > 0;) {
      problem.candidates(n, candidates_);
      std::fill(through.begin(), through.end(), infinity);
      double least = infinity, sum = 0;
      for (uint32_t d : candidates_) {
        through[d] = of(n, d) + problem.seconds(n, d);
        least = std::min(least, through[d]);
        sum += of(n, d);
      }
      mean_[n] = sum / static_cast<double>(candidates_.size());
      for (uint32_t v : problem.inputs(n))
        if (problem.producer(v) != policy_none)
          push(problem.producer(v), through, least + problem.mean_move_seconds(v));
    }
  }

  double of(task_id n, uint32_t d) const { return costs_[static_cast<size_t>(n) * devices_ + d]; }
  double mean(task_id n) const { return mean_[n]; }

private:
  void push(task_id maker, std::span<const double> stays, double moves) {
    double* row = &costs_[static_cast<size_t>(maker) * devices_];
    for (uint32_t d = 0; d < devices_; ++d)
      row[d] = std::max(row[d], std::min(stays[d], moves));
  }

  uint32_t devices_;
  std::vector<double> costs_;        // by task and device
  std::vector<double> mean_;         // by task, over its candidates
  std::vector<uint32_t> candidates_; // scratch
};

} // namespace

void place_peft(const scheduling_problem& problem, schedule& made) {
  const optimistic_costs costs(problem);
  earliest_finish schedule(problem);
  const auto place = [&](task_id n) {
    schedule.place_by(n, [&](uint32_t d, double finish) { return finish + costs.of(n, d); });
  };
  place_greatest_first(
      problem, [&](task_id n) { return costs.mean(n); }, place);
  schedule.take(made);
}

} // namespace troupe

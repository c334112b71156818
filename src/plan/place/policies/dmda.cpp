// Each task when it becomes ready, on the worker of the least fitness: what StarPU calls dmda ("deque model data
// aware"; Augonnet, Thibault, Namyst, Wacrenier, "StarPU: a unified platform for task scheduling on heterogeneous
// multicore architectures", CCPE 23(2), 2011).
//
//     fitness = alpha · (expected end − best expected end) + beta · (seconds in which the data that lack there come),
//     alpha = beta = 1
//
// The expected end is that of the worker's queue, or now if that is later, and the task's time. A queue is first in,
// first out, so nothing is put into a pause. Unlike `heft` it does not look ahead: what is ready first is placed first.
// Time is virtual: a task is ready when the last of its makers would end.
#include "plan/place/earliest_finish.hpp"
#include "plan/place/policies.hpp"
#include "plan/place/ready_tasks.hpp"

namespace troupe {
namespace {

class virtual_run {
public:
  explicit virtual_run(const scheduling_problem& problem) : problem_(problem), schedule_(problem), ready_(problem) {}

  void run(schedule& made) {
    ready_.begin([&](task_id n) { push(n, 0); });
    while (!ends_.empty()) {
      const keyed_task first = ends_.top();
      ends_.pop();
      ready_.complete(first.task, [&](task_id next) { push(next, -first.key); });
    }
    schedule_.take(made);
  }

private:
  void push(task_id n, double now) {
    problem_.candidates(n, devices_);
    uint32_t best = policy_none;
    double least = 0;
    for (uint32_t d : devices_) { // the best expected end is the same for all
      const double fitness =
          std::max(schedule_.end_of(d), now) + problem_.seconds(n, d) + schedule_.lacking_seconds(n, d);
      if (best == policy_none || fitness < least) {
        best = d;
        least = fitness;
      }
    }
    schedule_.append(n, best, std::max(now, schedule_.ready_at(n, best)));
    ends_.push({-schedule_.finish_of(n), n});
  }

  const scheduling_problem& problem_;
  earliest_finish schedule_;
  ready_tasks ready_;
  std::priority_queue<keyed_task> ends_; // of what runs, by its negative end
  std::vector<uint32_t> devices_;        // scratch
};

} // namespace

void place_dmda(const scheduling_problem& problem, schedule& made) {
  virtual_run(problem).run(made);
}

} // namespace troupe

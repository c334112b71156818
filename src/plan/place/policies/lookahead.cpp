// HEFT with lookahead (Bittencourt, Sakellariou, Madeira, "DAG scheduling using a lookahead variant of the
// heterogeneous earliest finish time algorithm", PDP 2010): tasks in HEFT's order, each on the device with which the
// last of the tasks that read what it makes would end first, if HEFT placed these next. A task that is read by none
// goes where it ends first. Makers of theirs that are not placed yet do not count.
//
// Time: the placings of HEFT, times devices and readers of a task.
#include "plan/place/earliest_finish.hpp"
#include "plan/place/mean_times.hpp"
#include "plan/place/policies.hpp"

#include <algorithm>

namespace troupe {
namespace {

class looking_ahead {
public:
  explicit looking_ahead(const scheduling_problem& problem)
      : problem_(problem), rank_(upward_ranks(problem, mean_seconds(problem))), schedule_(problem) {}

  void run(schedule& made) {
    for (task_id n : by_rank(rank_)) {
      find_readers(n);
      problem_.candidates(n, devices_);
      std::pair<double, double> least; // end of the last reader, then the task's own
      uint32_t best = policy_none;
      for (uint32_t d : devices_) {
        const double own = schedule_.slot_on(n, d).finish;
        const std::pair is{devices_.size() > 1 ? last_reader(n, d, own) : own, own};
        if (best == policy_none || is < least) {
          best = d;
          least = is;
        }
      }
      schedule_.place_on(n, best);
    }
    schedule_.take(made);
  }

private:
  /// Finds the tasks that read what a task makes, those of higher rank first.
  void find_readers(task_id n) {
    readers_.clear();
    for (uint32_t v : problem_.outputs(n))
      readers_.insert(readers_.end(), problem_.readers(v).begin(), problem_.readers(v).end());
    const auto before = [&](task_id a, task_id b) { return rank_[a] != rank_[b] ? rank_[a] > rank_[b] : a < b; };
    std::sort(readers_.begin(), readers_.end(), before);
    readers_.erase(std::unique(readers_.begin(), readers_.end()), readers_.end());
  }

  /// Returns when the last reader of a task would end with the task on device `d`; `own` if none reads it.
  double last_reader(task_id n, uint32_t d, double own) {
    std::vector<earliest_finish::placing> trials;
    const auto put = [&](task_id task, uint32_t on) {
      trials.push_back(schedule_.before(task, on));
      schedule_.place_on(task, on);
    };
    put(n, d);
    double last = readers_.empty() ? own : 0;
    for (task_id reader : readers_) {
      const auto [best, at] = schedule_.first_finish(reader);
      put(reader, best);
      last = std::max(last, at.finish);
    }
    for (; !trials.empty(); trials.pop_back())
      schedule_.take_back(std::move(trials.back()));
    return last;
  }

  const scheduling_problem& problem_;
  const std::vector<double> rank_;
  earliest_finish schedule_;
  std::vector<task_id> readers_;  // of the task that is placed
  std::vector<uint32_t> devices_; // scratch
};

} // namespace

void place_lookahead(const scheduling_problem& problem, schedule& made) {
  looking_ahead(problem).run(made);
}

} // namespace troupe

// Dynamic critical path (Kwok, Ahmad, "Dynamic critical-path scheduling: an effective technique for allocating task
// graphs to multiprocessors", IEEE TPDS 7(5), 1996), for devices that are given and differ.
//
// The longest path changes while tasks are placed: of the tasks that are ready, the one on the longest path goes next,
// as far as its start is known. It goes to the device where its start and the end of its critical reader on the same
// device are the earliest: the reader on the longest path among those that read it.
//
// The paper takes as many equal processors as it wants, also places tasks that are not ready, and may shift what is
// placed; it counts the reader's start, which says the same if all devices are equal.
#include "plan/place/earliest_finish.hpp"
#include "plan/place/mean_times.hpp"
#include "plan/place/policies.hpp"
#include "plan/place/ready_tasks.hpp"

#include <algorithm>

namespace troupe {
namespace {

class critical_paths {
public:
  explicit critical_paths(const scheduling_problem& problem)
      : problem_(problem), mean_(mean_seconds(problem)), to_end_(upward_ranks(problem, mean_)), schedule_(problem) {}

  void run(schedule& made) {
    place_greatest_first(
        problem_, [&](task_id n) { return path_through(n); }, [&](task_id n) { place(n); });
    schedule_.take(made);
  }

private:
  /// Returns the seconds of the longest path through a task: until its start as far as makers are placed, then by mean
  /// times.
  double path_through(task_id n) const {
    double start = 0;
    for (uint32_t v : problem_.inputs(n))
      if (const task_id maker = problem_.producer(v); maker != policy_none && schedule_.is_placed(maker))
        start = std::max(start, schedule_.finish_of(maker) + ranked_move(problem_, v));
    return start + to_end_[n];
  }

  /// What reads what a task makes, and the value by which it does.
  struct reader {
    task_id task = policy_none;
    uint32_t value = 0;
  };
  reader critical_reader(task_id n) const {
    reader critical;
    double longest = 0;
    for (uint32_t v : problem_.outputs(n))
      for (task_id r : problem_.readers(v))
        if (const double path = path_through(r); critical.task == policy_none || path > longest) {
          critical = {r, v};
          longest = path;
        }
    return critical;
  }

  void place(task_id n) {
    const auto [next, value] = critical_reader(n);
    schedule_.place_by(n, [&, r = next, v = value](uint32_t d, double finish) {
      if (r == policy_none)
        return finish;
      const double start = schedule_.slot_on(n, d).start;
      if (!problem_.allows(r, d))
        return start + finish + ranked_move(problem_, v) + mean_[r];
      return start + std::max(start + problem_.seconds(n, d), schedule_.ready_at(r, d)) + problem_.seconds(r, d);
    });
  }

  const scheduling_problem& problem_;
  const std::vector<double> mean_, to_end_;
  earliest_finish schedule_;
};

} // namespace

void place_dcp(const scheduling_problem& problem, schedule& made) {
  critical_paths(problem).run(made);
}

} // namespace troupe

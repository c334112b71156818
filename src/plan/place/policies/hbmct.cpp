// Hybrid balanced minimum completion time (Sakellariou, Zhao, "A hybrid heuristic for DAG scheduling on heterogeneous
// systems", IPDPS 2004): in HEFT's order, tasks that do not depend on each other make a group, and a group is scheduled
// as a whole. Each of its tasks begins on the device that runs it in the least time; then, as long as that lets the
// device that ends last end earlier, one of its tasks moves to another one. Of all such moves the one is taken after
// which the two devices are done first. A device runs its tasks of a group in the order in which they can start, after
// all that it has.
//
// A group's moves end after a fixed effort, which large groups of hundreds of tasks a device reach.
#include "plan/place/earliest_finish.hpp"
#include "plan/place/mean_times.hpp"
#include "plan/place/policies.hpp"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

constexpr size_t most_steps = 2'000'000; // of tasks looked at while a group is balanced

/// A task of a group on one device.
struct place_there {
  double ready = 0, seconds = 0;
  task_id task = 0;

  bool operator<(const place_there& other) const { return std::pair(ready, task) < std::pair(other.ready, other.task); }
};

class group_balance {
public:
  group_balance(const scheduling_problem& problem, earliest_finish& schedule, std::span<const task_id> group)
      : problem_(problem), schedule_(schedule), queues_(problem.device_count()), ends_(problem.device_count(), 0) {
    for (task_id n : group) {
      problem_.candidates(n, devices_);
      const auto faster = [&](uint32_t a, uint32_t b) { return problem_.seconds(n, a) < problem_.seconds(n, b); };
      const uint32_t d = *std::min_element(devices_.begin(), devices_.end(), faster);
      add(on(n, d), queues_[d]);
    }
  }

  void run() {
    for (uint32_t d = 0; d < problem_.device_count(); ++d)
      ends_[d] = end_with(d, nullptr, policy_none);
    while (steps_ < most_steps && move_one()) {
    }
    for (uint32_t d = 0; d < problem_.device_count(); ++d)
      for (const place_there& p : queues_[d])
        schedule_.append(p.task, d, p.ready);
  }

private:
  using queue = std::vector<place_there>; // ascending

  place_there on(task_id n, uint32_t d) const { return {schedule_.ready_at(n, d), problem_.seconds(n, d), n}; }
  static void add(const place_there& p, queue& to) { to.insert(std::upper_bound(to.begin(), to.end(), p), p); }

  /// Returns when a device has done its tasks with `more`, if there is one, and without the task `less`.
  double end_with(uint32_t d, const place_there* more, task_id less) {
    double end = schedule_.end_of(d);
    const auto run = [&](const place_there& p) { end = std::max(end, p.ready) + p.seconds; };
    for (const place_there& p : queues_[d]) {
      if (more && *more < p)
        run(*std::exchange(more, nullptr));
      if (p.task != less)
        run(p);
    }
    if (more)
      run(*more);
    steps_ += queues_[d].size() + 1;
    return end;
  }

  /// Takes the best move from the device that ends last; returns whether there is one.
  bool move_one() {
    const auto last = static_cast<uint32_t>(std::max_element(ends_.begin(), ends_.end()) - ends_.begin());
    struct move {
      double later;
      place_there what;
      uint32_t to = policy_none;
    } best{ends_[last], {}};
    for (const place_there& p : queues_[last]) {
      const double without = end_with(last, nullptr, p.task);
      if (without >= best.later)
        continue;
      problem_.candidates(p.task, devices_);
      for (uint32_t d : devices_) {
        if (d == last)
          continue;
        const place_there there = on(p.task, d);
        if (const double later = std::max(without, end_with(d, &there, policy_none)); later < best.later)
          best = {later, there, d};
      }
    }
    if (best.to == policy_none)
      return false;
    std::erase_if(queues_[last], [&](const place_there& p) { return p.task == best.what.task; });
    add(best.what, queues_[best.to]);
    ends_[last] = end_with(last, nullptr, policy_none);
    ends_[best.to] = end_with(best.to, nullptr, policy_none);
    return true;
  }

  const scheduling_problem& problem_;
  earliest_finish& schedule_;
  std::vector<queue> queues_; // by device
  std::vector<double> ends_;  // by device
  std::vector<uint32_t> devices_;
  size_t steps_ = 0;
};

} // namespace

void place_hbmct(const scheduling_problem& problem, schedule& made) {
  earliest_finish schedule(problem);
  std::vector<uint32_t> group_of(problem.task_count(), policy_none);
  std::vector<task_id> group;
  uint32_t number = 0;
  const auto depends = [&](task_id n) {
    const auto inputs = problem.inputs(n);
    return std::any_of(inputs.begin(), inputs.end(), [&](uint32_t v) {
      return problem.producer(v) != policy_none && group_of[problem.producer(v)] == number;
    });
  };
  for (task_id n : by_rank(upward_ranks(problem, mean_seconds(problem)))) {
    if (depends(n)) {
      group_balance(problem, schedule, group).run();
      group.clear();
      ++number;
    }
    group_of[n] = number;
    group.push_back(n);
  }
  group_balance(problem, schedule, group).run();
  schedule.take(made);
}

} // namespace troupe

// Which tasks may be placed: those whose operands' makers are placed. What policies that decide in ready order have in
// common.
#pragma once

#include "plan/place/scheduling_problem.hpp"

#include <queue>

namespace troupe {

/// See the top of this file.
class ready_tasks {
public:
  explicit ready_tasks(const scheduling_problem& problem) : problem_(problem), waiting_(problem.task_count(), 0) {
    for (uint32_t v = 0; v < problem.value_count(); ++v)
      if (problem.producer(v) != policy_none)
        for (task_id reader : problem.readers(v))
          ++waiting_[reader];
  }

  /// Calls `ready(task)` for each task that waits for none, in the graph's order.
  template <class Ready>
  void begin(Ready&& ready) const {
    for (task_id n = 0; n < problem_.task_count(); ++n)
      if (waiting_[n] == 0)
        ready(n);
  }

  /// Calls `ready(task)` for each task that waited for `done` last.
  template <class Ready>
  void complete(task_id done, Ready&& ready) {
    for (uint32_t v : problem_.outputs(done))
      for (task_id reader : problem_.readers(v))
        if (--waiting_[reader] == 0)
          ready(reader);
  }

private:
  const scheduling_problem& problem_;
  std::vector<uint32_t> waiting_; // by task: values that it waits for
};

/// A task with what it is taken by: the greatest key first, of equal ones the smallest number.
struct keyed_task {
  double key = 0;
  task_id task = 0;

  bool operator<(const keyed_task& other) const { return key != other.key ? key < other.key : task > other.task; }
};

/// Calls `place(task)` for each task, of those that are ready the one of the greatest `key(task)` first. A key may only
/// fall while others are placed: an old one is an upper bound, and only the tasks at the top of the queue are asked
/// again.
template <class Key, class Place>
void place_greatest_first(const scheduling_problem& problem, Key&& key, Place&& place) {
  ready_tasks ready(problem);
  std::priority_queue<keyed_task> next;
  const auto add = [&](task_id n) { next.push({key(n), n}); };
  ready.begin(add);
  while (!next.empty()) {
    const task_id n = next.top().task;
    next.pop();
    const keyed_task now{key(n), n};
    if (!next.empty() && now < next.top()) {
      next.push(now);
      continue;
    }
    place(n);
    ready.complete(n, add);
  }
}

} // namespace troupe

// Which tasks may be placed: those whose operands' makers are placed. What policies that decide in ready order have in
// common.
#pragma once

#include "plan/place/scheduling_problem.hpp"

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

} // namespace troupe

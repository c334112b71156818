#include "plan/place/mean_times.hpp"

#include <algorithm>
#include <numeric>

namespace troupe {

std::vector<double> mean_seconds(const scheduling_problem& problem) {
  std::vector<double> mean(problem.task_count());
  std::vector<uint32_t> devices;
  for (task_id n = problem.task_count(); n-- > 0;) {
    problem.candidates(n, devices);
    double sum = 0;
    for (uint32_t d : devices)
      sum += problem.seconds(n, d);
    mean[n] = sum / static_cast<double>(devices.size());
  }
  return mean;
}

double ranked_move(const scheduling_problem& problem, uint32_t v) {
  return problem.move_weight() > 0 ? problem.mean_move_seconds(v) * problem.move_weight() : 0;
}

std::vector<double> upward_ranks(const scheduling_problem& problem, std::span<const double> mean, bool moves) {
  std::vector<double> rank(problem.task_count(), 0);
  for (task_id n = problem.task_count(); n-- > 0;) {
    double after = 0;
    for (uint32_t v : problem.outputs(n)) {
      const std::span<const task_id> readers = problem.readers(v);
      const double move = readers.empty() || !moves ? 0 : ranked_move(problem, v);
      for (task_id reader : readers)
        after = std::max(after, move + rank[reader]);
    }
    rank[n] = mean[n] + after;
  }
  return rank;
}

std::vector<double> downward_ranks(const scheduling_problem& problem, std::span<const double> mean) {
  std::vector<double> rank(problem.task_count(), 0);
  for (task_id n = 0; n < problem.task_count(); ++n)
    for (uint32_t v : problem.outputs(n)) {
      const std::span<const task_id> readers = problem.readers(v);
      const double move = readers.empty() ? 0 : ranked_move(problem, v);
      for (task_id reader : readers)
        rank[reader] = std::max(rank[reader], rank[n] + mean[n] + move);
    }
  return rank;
}

std::vector<task_id> by_rank(std::span<const double> rank) {
  std::vector<task_id> order(rank.size());
  std::iota(order.begin(), order.end(), task_id{0});
  std::stable_sort(order.begin(), order.end(), [&](task_id a, task_id b) { return rank[a] > rank[b]; });
  return order;
}

} // namespace troupe

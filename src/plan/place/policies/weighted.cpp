// Contiguous shares in the graph's order, in proportion to the devices' speeds: every device takes about as long as any
// other, and little moves between them. Runs in flight side by side keep all devices busy.
#include "plan/place/policies.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

/// Returns the seconds that each regular device would take for everything, and for each task the mean over those that
/// can run it.
struct work_of_all {
  std::vector<double> by_device; // in the order of `scheduling_problem::order`
  std::vector<double> by_task;
};

work_of_all measure(const scheduling_problem& problem) {
  work_of_all all{std::vector<double>(problem.regular_count(), 0), std::vector<double>(problem.task_count(), 0)};
  std::vector<double> seconds;
  for (task_id n = 0; n < problem.task_count(); ++n) {
    seconds.clear();
    for (size_t i = 0; i < all.by_device.size(); ++i)
      seconds.push_back(problem.seconds(n, problem.order()[i]));
    const auto known = std::count_if(seconds.begin(), seconds.end(), [](double s) { return std::isfinite(s); });
    for (double s : seconds)
      all.by_task[n] += std::isfinite(s) ? s / static_cast<double>(known) : 0;
    for (size_t i = 0; i < seconds.size(); ++i) // a device that cannot run it counts as an average one
      all.by_device[i] += std::isfinite(seconds[i]) ? seconds[i] : all.by_task[n];
  }
  return all;
}

} // namespace

void place_weighted(const scheduling_problem& problem, schedule& made) {
  const work_of_all all = measure(problem);
  double total_speed = 0, total_work = 0;
  for (double s : all.by_device)
    total_speed += 1 / std::max(s, 1e-30);
  for (double s : all.by_task)
    total_work += s;
  size_t device = 0;
  double done = 0, share_end = all.by_device.empty() ? 1 : 1 / std::max(all.by_device[0], 1e-30) / total_speed;
  for (task_id n = 0; n < problem.task_count(); ++n) {
    // A task belongs to the share that holds its middle.
    const double middle = total_work > 0 ? (done + all.by_task[n] / 2) / total_work : 0;
    while (middle > share_end && device + 1 < all.by_device.size())
      share_end += 1 / std::max(all.by_device[++device], 1e-30) / total_speed;
    made.device[n] = problem.order()[problem.find(n, device)];
    done += all.by_task[n];
  }
}

} // namespace troupe

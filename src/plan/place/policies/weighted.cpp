// Contiguous shares in the graph's order, in proportion to the devices' speeds: every device takes about as long as any
// other, and little moves between them. Runs in flight side by side keep all devices busy.
#include "plan/place/policies.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Returns the seconds that each regular device would take for everything, and for each node the mean over devices.
struct work_of_all {
  std::vector<double> by_device; // in the order of `placement_problem::order`
  std::vector<double> by_node;
};

work_of_all measure(placement_problem& problem) {
  work_of_all all{std::vector<double>(problem.regular_count(), 0), std::vector<double>(problem.node_count(), 0)};
  for (size_t n = 0; n < all.by_node.size(); ++n) {
    for (size_t i = 0; i < all.by_device.size(); ++i) {
      const double s = problem.seconds(static_cast<node_id>(n), problem.order()[i]);
      all.by_device[i] += s;
      all.by_node[n] += s / static_cast<double>(all.by_device.size());
    }
  }
  return all;
}

} // namespace

placed_nodes place_weighted(placement_problem& problem) {
  const work_of_all all = measure(problem);
  double total_speed = 0, total_work = 0;
  for (double s : all.by_device)
    total_speed += 1 / std::max(s, 1e-30);
  for (double s : all.by_node)
    total_work += s;
  placed_nodes placed(problem.node_count());
  size_t device = 0;
  double done = 0, share_end = all.by_device.empty() ? 1 : 1 / std::max(all.by_device[0], 1e-30) / total_speed;
  for (size_t n = 0; n < placed.size(); ++n) {
    // A node belongs to the share that holds its middle.
    const double middle = total_work > 0 ? (done + all.by_node[n] / 2) / total_work : 0;
    while (middle > share_end && device + 1 < all.by_device.size())
      share_end += 1 / std::max(all.by_device[++device], 1e-30) / total_speed;
    placed[n] = problem.order()[problem.find(static_cast<node_id>(n), device)];
    done += all.by_node[n];
  }
  return placed;
}

} // namespace troupe

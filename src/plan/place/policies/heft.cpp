// Heterogeneous earliest finish time (Topcuoglu, Hariri, Wu 2002): nodes in the order of their distance to the end of the model, each on
// the device that would finish it first (earliest_finish.hpp).
//
// The result is a plan's first draft: `make_plan` compares it with `single` by prediction and keeps the better.
#include "plan/place/earliest_finish.hpp"

#include <algorithm>
#include <numeric>

namespace troupe {
namespace {

class ranker {
public:
  ranker(placement_problem& problem, earliest_finish& schedule) : problem_(problem), schedule_(schedule) {}

  /// Seconds from each node's start to the end of the model, with times averaged over the devices.
  std::vector<double> upward_ranks() {
    std::vector<double> rank(problem_.node_count(), 0);
    for (auto n = static_cast<node_id>(rank.size()); n-- > 0;) {
      double after = 0;
      for (value_id v : problem_.program().nodes[n].outputs)
        if (v != no_value)
          for (node_id reader : problem_.edges().consumers[v])
            after = std::max(after, mean_move(v) + rank[reader]);
      rank[n] = mean_seconds(n) + after;
    }
    return rank;
  }

private:
  /// Returns how a node's time and those of others are averaged: over the regular devices that may run it.
  double mean_seconds(node_id n) {
    double sum = 0, count = 0;
    for (device_index d : schedule_.candidates(n)) {
      sum += problem_.seconds(n, d);
      ++count;
    }
    return sum / count;
  }

  double mean_move(value_id v) {
    const size_t devices = problem_.regular_count();
    if (devices < 2)
      return 0;
    const auto bytes = static_cast<double>(problem_.bytes(v));
    double sum = 0;
    for (size_t i = 0; i < devices; ++i) {
      const device_info& d = problem_.devices()[problem_.order()[i]];
      sum += d.profile.chunk_s + link_seconds(bytes, d.profile.up) + link_seconds(bytes, d.profile.down) +
             network_seconds(bytes, nullptr, &d) + network_seconds(bytes, &d, nullptr);
    }
    // A move is one device's down and another's up; one of `devices` choices is no move.
    return sum / static_cast<double>(devices) * (1 - 1 / static_cast<double>(devices));
  }

  placement_problem& problem_;
  earliest_finish& schedule_;
};

} // namespace

placed_nodes place_heft(placement_problem& problem) {
  earliest_finish schedule(problem);
  const std::vector<double> rank = ranker(problem, schedule).upward_ranks();
  std::vector<node_id> order(problem.node_count());
  std::iota(order.begin(), order.end(), node_id{0});
  // Equal ranks keep the graph's order, which is topological.
  std::stable_sort(order.begin(), order.end(), [&](node_id a, node_id b) { return rank[a] > rank[b]; });
  for (node_id n : order)
    schedule.place(n);
  return schedule.take();
}

} // namespace troupe

// Alternating by node: the most that can move between devices. For tests and experiments; never fast.
#include "plan/place/policies.hpp"

namespace troupe {

placed_nodes place_round_robin(placement_problem& problem) {
  placed_nodes placed(problem.node_count());
  size_t next = 0;
  for (size_t n = 0; n < placed.size(); ++n) {
    const size_t at = problem.find(static_cast<node_id>(n), next);
    placed[n] = problem.order()[at];
    if (at < problem.regular_count())
      next = (at + 1) % problem.regular_count();
  }
  return placed;
}

} // namespace troupe

// Everything on the first device that can run it: the least that moves between devices, and what every other policy has to
// beat.
#include "plan/place/policies.hpp"

namespace troupe {

placed_nodes place_single(placement_problem& problem) {
  placed_nodes placed(problem.node_count());
  for (size_t n = 0; n < placed.size(); ++n)
    placed[n] = problem.order()[problem.find(static_cast<node_id>(n), 0)];
  return placed;
}

} // namespace troupe

// In the graph's order, each node on the device that would finish it first: what StarPU calls dmda ("deque model data aware"; Augonnet,
// Thibault, Namyst, Wacrenier 2011). Unlike `heft` it does not look ahead: what is ready first is placed first.
#include "plan/place/earliest_finish.hpp"

namespace troupe {

placed_nodes place_dmda(placement_problem& problem) {
  earliest_finish schedule(problem);
  for (size_t n = 0; n < problem.node_count(); ++n)
    schedule.place(static_cast<node_id>(n));
  return schedule.take();
}

} // namespace troupe

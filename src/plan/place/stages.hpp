// Contiguous stages of a row of nodes over a row of devices, the slowest stage as fast as can be: chains-on-chains
// partitioning. Pure numbers; `pipeline` (policies/pipeline.cpp) finds them in a graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe {

/// What stages cost on one device. A stage takes the nodes from cut `a` to cut `b`, a < b; cut `c` is before node `c`,
/// the last one after all nodes. It takes `end[b] - begin[a]` seconds, and `stage_costs::network` more if the stage
/// before is on another host.
struct device_stages {
  std::vector<double> end;   // by cut: seconds of the nodes before it, and of sending what crosses it
  std::vector<double> begin; // by cut: seconds of the nodes before it, less those of receiving what crosses it
  std::vector<uint32_t>
      first;         // by cut b: the first cut where a stage that ends at b may begin; ascending; b if there is none
  uint32_t host = 0; // where the device is
};

struct stage_costs {
  uint32_t cuts = 0;                        // one more than nodes
  std::vector<device_stages> devices;       // in the order of the stages
  uint32_t hosts = 1;                       // numbered from 0
  std::vector<std::vector<double>> network; // by host before and host after, by cut; empty: nothing
};

/// The nodes from cut `begin` to cut `end` on a device.
struct stage {
  uint32_t device = 0, begin = 0, end = 0;

  bool operator==(const stage&) const = default;
};

/// Returns the stages, in order, whose slowest takes the least time (within one part in 10⁹), and of those with the
/// same slowest time the fewest. Devices keep their order and may be left out. Empty if no stages can cover all nodes.
std::vector<stage> balance_stages(const stage_costs& costs);

} // namespace troupe

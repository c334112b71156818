// Platforms and task graphs by seed, for the comparison with SimGrid.
#pragma once

#include "troupe/task_graph.hpp"

#include <array>
#include <string>

namespace troupe::test {

inline constexpr std::array<const char*, 4> platform_kinds{"shared links", "star", "cluster", "two-level tree"};
inline constexpr std::array<const char*, 3> graph_kinds{"chains", "fork-join", "random"};

/// Returns a platform of SimGrid, of 3 to 12 hosts of different speeds, as XML.
std::string random_platform(size_t kind, uint64_t seed);

/// Returns a graph of some 10 to 60 tasks; moving its values takes as long as its work, a tenth or ten times that.
task_graph random_graph(size_t kind, uint64_t seed);

} // namespace troupe::test

// Topological order of a directed graph.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace troupe {

/// Returns the vertices 0 … count − 1 of a graph so that each edge (from, to) leads forwards; if several could come next, the
/// lowest does, so that an order which is topological already stays (Kahn, "Topological sorting of large networks", CACM 1962).
/// Vertices on cycles and after them are missing.
std::vector<uint32_t> topological_order(size_t count, std::span<const std::pair<uint32_t, uint32_t>> edges);

} // namespace troupe

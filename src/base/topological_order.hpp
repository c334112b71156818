// Topological order of a directed graph, or the cycle that prevents one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// Returns the vertices 0 … count − 1 of a graph so that each edge (from, to) leads forwards; if several could come
/// next, the lowest does, so that an order which is topological already stays (Kahn, "Topological sorting of large
/// networks", CACM 1962). Vertices on cycles and after them are missing.
std::vector<uint32_t> topological_order(size_t count, std::span<const std::pair<uint32_t, uint32_t>> edges);

/// Returns one of a graph's cycles: vertices with an edge from each to the next, and from the last to the first. Empty
/// if it has none.
std::vector<uint32_t> find_cycle(size_t count, std::span<const std::pair<uint32_t, uint32_t>> edges);

/// Returns a cycle in words, by the names of its vertices: those of a long one that come first, and how many there are.
template <class Name>
std::string cycle_text(std::span<const uint32_t> cycle, Name&& name) {
  constexpr size_t shown = 8;
  std::string text;
  for (size_t i = 0; i < cycle.size() && i < shown; ++i)
    text += (i > 0 ? ", " : "") + name(cycle[i]);
  return cycle.size() > shown ? text + ", and so on (" + std::to_string(cycle.size()) + " in all)" : text;
}

} // namespace troupe

#include "base/topological_order.hpp"

#include <algorithm>
#include <functional>
#include <queue>

namespace troupe {

std::vector<uint32_t> topological_order(size_t count, std::span<const std::pair<uint32_t, uint32_t>> edges) {
  // Edges by their source: those of v are [first[v], first[v + 1]).
  std::vector<uint32_t> first(count + 1, 0), missing(count, 0), targets(edges.size());
  for (const auto& [from, to] : edges) {
    ++first[from + 1];
    ++missing[to];
  }
  for (size_t v = 0; v < count; ++v)
    first[v + 1] += first[v];
  std::vector<uint32_t> end(first.begin(), first.end() - 1);
  for (const auto& [from, to] : edges)
    targets[end[from]++] = to;
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
  for (uint32_t v = 0; v < count; ++v)
    if (missing[v] == 0)
      ready.push(v);
  std::vector<uint32_t> order;
  order.reserve(count);
  while (!ready.empty()) {
    const uint32_t v = ready.top();
    ready.pop();
    order.push_back(v);
    for (uint32_t e = first[v]; e < first[v + 1]; ++e)
      if (--missing[targets[e]] == 0)
        ready.push(targets[e]);
  }
  return order;
}

std::vector<uint32_t> find_cycle(size_t count, std::span<const std::pair<uint32_t, uint32_t>> edges) {
  std::vector<bool> is_blocked(count, true);
  for (uint32_t v : topological_order(count, edges))
    is_blocked[v] = false;
  const auto blocked = std::find(is_blocked.begin(), is_blocked.end(), true);
  if (blocked == is_blocked.end())
    return {};
  // Whatever is blocked has a predecessor that is. Going back along these long enough ends on a cycle.
  std::vector<uint32_t> blocker(count, 0);
  for (const auto& [from, to] : edges)
    if (is_blocked[from])
      blocker[to] = from;
  auto at = static_cast<uint32_t>(blocked - is_blocked.begin());
  for (size_t steps = 0; steps < count; ++steps)
    at = blocker[at];
  std::vector<uint32_t> cycle;
  const uint32_t end = at;
  do {
    cycle.push_back(at);
    at = blocker[at];
  } while (at != end);
  std::reverse(cycle.begin(), cycle.end());
  return cycle;
}

} // namespace troupe

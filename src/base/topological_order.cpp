#include "base/topological_order.hpp"

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

} // namespace troupe

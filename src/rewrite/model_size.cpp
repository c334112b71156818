#include "rewrite/model_size.hpp"

#include "graph/bodies.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Bytes that a node has in a file, at least.
constexpr int64_t bytes_a_node = 16;

/// The bytes of a tensor, as addresses.
struct stretch {
  uintptr_t begin, end;
};

void add(std::vector<stretch>& stretches, const tensor& t) {
  const auto begin = reinterpret_cast<uintptr_t>(t.data());
  if (t.defined())
    stretches.push_back({begin, begin + static_cast<uintptr_t>(t.bytes())});
}

void collect(const graph& g, model_size& size, std::vector<stretch>& stretches) {
  size.nodes += static_cast<int64_t>(g.nodes.size());
  for (const value& v : g.values)
    if (v.constant && !v.constant->step)
      add(stretches, v.constant->leaf);
  for (const node& n : g.nodes)
    for (const auto& [name, a] : n.attrs.all())
      if (const auto* literal = std::get_if<tensor>(&a))
        add(stretches, *literal);
      else if (const auto* body = std::get_if<graph_ptr>(&a); body && *body)
        collect(**body, size, stretches);
}

/// Returns how many bytes are in some stretch.
int64_t covered(std::vector<stretch> stretches) {
  std::sort(stretches.begin(), stretches.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  uintptr_t sum = 0, reached = 0;
  for (const stretch& s : stretches) {
    const uintptr_t begin = std::max(s.begin, reached);
    if (s.end > begin)
      sum += s.end - begin;
    reached = std::max(reached, s.end);
  }
  return static_cast<int64_t>(sum);
}

} // namespace

model_size size_of(const graph& g) {
  model_size size;
  std::vector<stretch> stretches;
  collect(g, size, stretches);
  size.bytes = covered(std::move(stretches)) + size.nodes * bytes_a_node;
  return size;
}

} // namespace troupe

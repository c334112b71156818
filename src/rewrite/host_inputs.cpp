#include "ops/registry.hpp"
#include "rewrite/rewrite.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace troupe {
namespace {

/// Returns whether a model input is small enough to specialise on.
bool is_small(const value& v) {
  if (!v.dims)
    return true;
  if (!is_constant(*v.dims))
    return v.dims->size() <= 1;
  const auto dims = constants(*v.dims);
  return std::none_of(dims.begin(), dims.end(), [](int64_t d) { return d < 0; }) &&
         volume(dims) <= static_cast<int64_t>(max_known_elements);
}

/// Returns the operands whose elements decide shapes.
std::vector<value_id> host_operands(const graph& g) {
  std::vector<value_id> found;
  for (const node& n : g.nodes)
    for (size_t i = 0; n.def && i < std::min<size_t>(n.formal_inputs(), 32); ++i)
      if ((n.def->host_inputs >> i & 1) && n.inputs[i] != no_value)
        found.push_back(n.inputs[i]);
  return found;
}

} // namespace

std::vector<value_id> shape_deciding_values(const graph& g) {
  const adjacency a = adjacency_of(g);
  std::vector<char> seen(g.values.size(), 0);
  std::vector<value_id> pending = host_operands(g), found;
  while (!pending.empty()) {
    const value_id v = pending.back();
    pending.pop_back();
    if (v == no_value || std::exchange(seen[v], 1))
      continue;
    found.push_back(v);
    if (a.producer[v] < 0)
      continue;
    const node& n = g.nodes[a.producer[v]];
    if (!n.def || !n.def->hides_elements)
      pending.insert(pending.end(), n.inputs.begin(), n.inputs.end());
  }
  return found;
}

std::vector<std::string> host_inputs_of(const graph& g) {
  const std::vector<value_id> deciding = shape_deciding_values(g);
  const std::set<value_id> decides(deciding.begin(), deciding.end());
  std::vector<std::string> names;
  for (value_id v : g.inputs)
    if (decides.contains(v) && !g.values[v].constant && is_small(g.values[v]))
      names.push_back(g.values[v].name);
  return names;
}

} // namespace troupe

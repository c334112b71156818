#include "rewrite/settled_by_dims.hpp"

#include "graph/bodies.hpp"
#include "graph/element_symbols.hpp"
#include "ops/composed/deferred.hpp"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

/// Returns the operands of a deferred call that decide its shapes.
std::vector<value_id> deciding_operands(const node& n) {
  const op_def& def = deferred_operator(n.attrs);
  std::vector<value_id> found;
  for (size_t i = 0; i < std::min<size_t>(n.inputs.size(), 32); ++i)
    if ((def.host_inputs >> i & 1) != 0)
      found.push_back(n.inputs[i]);
  return found;
}

/// Returns whether the elements of `values` follow from the dims of the graph's inputs alone.
bool follow_from_dims(const graph& g, const adjacency& a, std::vector<value_id> values) {
  std::vector<char> seen(g.values.size(), 0);
  while (!values.empty()) {
    const value_id v = values.back();
    values.pop_back();
    if (v == no_value || std::exchange(seen[v], 1) || g.values[v].constant)
      continue;
    if (g.values[v].known ? depend_on_run(*g.values[v].known) : a.producer[v] < 0)
      return false;
    if (g.values[v].known)
      continue;
    const node& n = g.nodes[a.producer[v]];
    if (has_body(n) || n.def->hides_elements || n.def->draws)
      return false;
    values.insert(values.end(), n.inputs.begin(), n.inputs.end());
  }
  return true;
}

} // namespace

bool has_calls_settled_by_dims(const graph& g) {
  const bool any = std::any_of(g.nodes.begin(), g.nodes.end(), is_deferred);
  const adjacency a = any ? adjacency_of(g) : adjacency{};
  return std::any_of(g.nodes.begin(), g.nodes.end(), [&](const node& n) {
    if (!has_body(n))
      return is_deferred(n) && follow_from_dims(g, a, deciding_operands(n));
    const std::vector<node_body> bodies = bodies_of(n);
    return std::any_of(bodies.begin(), bodies.end(),
                       [](const node_body& body) { return has_calls_settled_by_dims(*body.program); });
  });
}

} // namespace troupe

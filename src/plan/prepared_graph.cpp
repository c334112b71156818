#include "plan/prepared_graph.hpp"

#include "base/printable.hpp"
#include "graph/bodies.hpp"

#include <unordered_map>
#include <unordered_set>

namespace troupe {
namespace {

bool is_sorted_topologically(const graph& g, std::span<const node_id> producer) {
  for (node_id n = 0; n < static_cast<node_id>(g.nodes.size()); ++n)
    for (value_id v : g.nodes[n].inputs)
      if (v != no_value && producer[v] >= n)
        return false;
  return true;
}

/// Every value needs a rank, except what control flow gives and nothing reads: outputs of the graph.
void check_ranks(const graph& g) {
  const auto check = [&](const std::vector<value_id>& ids, const node& n) {
    for (value_id v : ids)
      if (v != no_value && !g.values[v].dims)
        fail(errc::unsupported, "the rank of '{}' ({}) is not known", g.values[v].name, describe(n));
  };
  std::unordered_set<value_id> made; // by control flow
  for (const node& n : g.nodes) {
    check(n.inputs, n);
    if (has_body(n))
      made.insert(n.outputs.begin(), n.outputs.end());
    else
      check(n.outputs, n);
  }
  for (value_id v : g.outputs)
    if (!g.values[v].dims && !made.contains(v))
      fail(errc::unsupported, "the rank of '{}' (a graph output) is not known", g.values[v].name);
}

} // namespace

void name_nodes(graph& g) {
  std::unordered_set<std::string> taken;
  std::unordered_map<std::string, size_t> last_number;
  for (node& n : g.nodes) {
    const std::string name = printable(n.name.empty() ? n.op_type : n.name);
    n.name = name;
    while (!taken.insert(n.name).second)
      n.name = fmt::format("{}#{}", name, ++last_number.try_emplace(name, 1).first->second);
  }
}

graph prepare(const graph& given) {
  if (given.outputs.empty())
    fail(errc::invalid_model, "the graph has no outputs, so there is nothing to run");
  validate(given);
  graph g = given;
  if (!is_sorted_topologically(g, adjacency_of(g).producer))
    sort_topologically(g);
  remove_dead(g);
  check_ranks(g);
  name_nodes(g);
  return g;
}

} // namespace troupe

#include "rewrite/linked_graph.hpp"

namespace troupe {

void linked_graph::relink() {
  const size_t values = graph_.values.size();
  alive_.assign(graph_.nodes.size(), 1);
  producer_.assign(values, -1);
  uses_.assign(values, 0);
  is_output_.assign(values, 0);
  readers_.assign(values, {});
  for (node_id n = 0; n < static_cast<node_id>(graph_.nodes.size()); ++n)
    link(n);
  for (value_id v : graph_.outputs) {
    is_output_[v] = 1;
    ++uses_[v];
  }
}

value_id linked_graph::add_value(value v) {
  producer_.push_back(-1);
  uses_.push_back(0);
  is_output_.push_back(0);
  readers_.emplace_back();
  return graph_.add_value(std::move(v));
}

node_id linked_graph::append(node n) {
  const node_id id = graph_.add_node(std::move(n));
  alive_.push_back(1);
  link(id);
  return id;
}

void linked_graph::link(node_id n) {
  for (value_id v : graph_.nodes[n].outputs)
    if (v != no_value)
      producer_[v] = n;
  for (value_id v : graph_.nodes[n].inputs)
    add_use(v, n);
}

void linked_graph::drop_outputs(node_id id, const node& n) {
  for (value_id v : n.outputs)
    if (v != no_value && producer_[v] == id)
      producer_[v] = -1;
}

void linked_graph::drop_inputs(const node& n) {
  for (value_id v : n.inputs)
    drop_use(v);
}

void linked_graph::add_use(value_id v, node_id n) {
  if (v == no_value)
    return;
  ++uses_[v];
  if (readers_[v].empty() || readers_[v].back() != n)
    readers_[v].push_back(n);
}

void linked_graph::drop_use(value_id v) {
  if (v != no_value && --uses_[v] == 0 && producer_[v] >= 0)
    unread_.push_back(producer_[v]);
}

bool linked_graph::reads(node_id n, value_id v) const {
  // Looking through the operands of a Concat of thousands, for each of them, would take minutes. No pattern has such a
  // node, so that taking it for a reader which it no longer is only loses a simplification.
  constexpr size_t too_many = 256;
  const auto& inputs = graph_.nodes[n].inputs;
  return alive_[n] && (inputs.size() > too_many || std::find(inputs.begin(), inputs.end(), v) != inputs.end());
}

std::vector<node_id> linked_graph::consumers(value_id v) const {
  std::vector<node_id> found = readers_[v];
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::erase_if(found, [&](node_id n) { return !reads(n, v); });
  return found;
}

node_id linked_graph::only_consumer(value_id v) const {
  if (is_output_[v] || uses_[v] == 0)
    return -1;
  node_id only = -1;
  for (node_id n : readers_[v]) { // a value may have very many: the second ends the walk
    if (n == only || !reads(n, v))
      continue;
    if (only >= 0)
      return -1;
    only = n;
  }
  return only;
}

} // namespace troupe

#include "graph/graph.hpp"

#include "base/printable.hpp"
#include "base/topological_order.hpp"
#include "graph/data_symbols.hpp"

#include <algorithm>
#include <map>

namespace troupe {

element_shapes join(const element_shapes& a, const element_shapes& b) {
  if (a.empty || b.empty)
    return a.empty ? b : a;
  if (!a.dims || !b.dims || a.dims->size() != b.dims->size())
    return {};
  element_shapes joined = a;
  for (size_t axis = 0; axis < a.dims->size(); ++axis)
    if ((*a.dims)[axis] != (*b.dims)[axis])
      (*joined.dims)[axis] = -1;
  return joined;
}

element_shapes shapes_of_elements(const std::optional<symbolic_shape>& dims) {
  element_shapes shapes;
  if (!dims)
    return shapes;
  shapes.dims.emplace();
  for (const dim& d : *dims)
    shapes.dims->push_back(d.is_constant() ? d.constant() : -1);
  return shapes;
}

value_id graph::add_value(value v) {
  values.push_back(std::move(v));
  return static_cast<value_id>(values.size() - 1);
}

value_id graph::add_constant(std::string name, tensor bytes) {
  value v;
  v.name = std::move(name);
  v.type = bytes.type();
  v.dims = to_symbolic(bytes.dims());
  v.constant = weight::from_tensor(std::move(bytes));
  return add_value(std::move(v));
}

node_id graph::add_node(node n) {
  nodes.push_back(std::move(n));
  return static_cast<node_id>(nodes.size() - 1);
}

adjacency adjacency_of(const graph& g) {
  adjacency a;
  a.producer.assign(g.values.size(), -1);
  a.consumers.resize(g.values.size());
  a.is_output.assign(g.values.size(), false);
  for (node_id n = 0; n < static_cast<node_id>(g.nodes.size()); ++n) {
    for (value_id v : g.nodes[n].outputs)
      if (v != no_value)
        a.producer[v] = n;
    for (value_id v : g.nodes[n].inputs)
      if (v != no_value && (a.consumers[v].empty() || a.consumers[v].back() != n))
        a.consumers[v].push_back(n);
  }
  for (value_id v : g.outputs)
    a.is_output[v] = true;
  return a;
}

std::string operator_name(const node& n) {
  return n.domain.empty() ? n.op_type : n.domain + "." + n.op_type;
}

std::string describe(const node& n) {
  return printable(operator_name(n) + " '" + n.name + "'");
}

namespace {

void check_index(const graph& g, value_id v, const std::string& where) {
  if (v < 0 || v >= static_cast<value_id>(g.values.size()))
    fail(errc::invalid_model, "{} refers to a value that does not exist", where);
}

void mark_produced(const graph& g, std::vector<bool>& produced, value_id v, const std::string& where) {
  check_index(g, v, where);
  if (produced[v])
    fail(errc::invalid_model, "value '{}' has two producers; the second is {}", g.values[v].name, where);
  produced[v] = true;
}

} // namespace

void validate(const graph& g) {
  std::vector<bool> produced(g.values.size(), false);
  for (size_t v = 0; v < g.values.size(); ++v)
    produced[v] = g.values[v].constant != nullptr;
  for (value_id v : g.inputs) {
    check_index(g, v, "the list of graph inputs");
    if (!g.values[v].constant) // else it is what the caller may give instead, until the rewrite
      mark_produced(g, produced, v, "the list of graph inputs");
  }
  for (const node& n : g.nodes)
    for (value_id v : n.outputs)
      if (v != no_value)
        mark_produced(g, produced, v, describe(n));
  for (const node& n : g.nodes)
    for (value_id v : n.inputs) {
      if (v == no_value)
        continue;
      check_index(g, v, describe(n));
      if (!produced[v] && !g.values[v].known)
        fail(errc::invalid_model, "{} reads '{}', which nothing produces", describe(n), g.values[v].name);
    }
  for (value_id v : g.outputs) {
    check_index(g, v, "the list of graph outputs");
    if (!produced[v] && !g.values[v].known)
      fail(errc::invalid_model, "graph output '{}' is not produced by any node", g.values[v].name);
  }
}

void sort_topologically(graph& g) {
  const adjacency a = adjacency_of(g);
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  for (size_t v = 0; v < g.values.size(); ++v)
    if (a.producer[v] >= 0)
      for (node_id consumer : a.consumers[v])
        edges.emplace_back(a.producer[v], consumer);
  const std::vector<uint32_t> order = topological_order(g.nodes.size(), edges);
  if (order.size() != g.nodes.size())
    fail(errc::invalid_model, "the graph has a cycle: each of these nodes needs the one before, the first the last: {}",
         cycle_text(find_cycle(g.nodes.size(), edges), [&](uint32_t n) { return describe(g.nodes[n]); }));
  std::vector<node> ordered;
  ordered.reserve(g.nodes.size());
  for (uint32_t n : order)
    ordered.push_back(std::move(g.nodes[n]));
  g.nodes = std::move(ordered);
}

namespace {

/// Walks back from the outputs, through operands and through symbols to the nodes that define them.
class liveness {
public:
  explicit liveness(const graph& g)
      : g_(g), producer_(adjacency_of(g).producer), symbols_(g), live_(g.nodes.size(), false),
        seen_(g.values.size(), false) {}

  std::vector<bool> run() {
    for (value_id v : g_.outputs)
      need(v);
    while (!pending_.empty()) {
      const value_id v = pending_.back();
      pending_.pop_back();
      need_node(producer_[v]);
      for (data_symbols::id s : symbols_.of_value(v))
        need_node(symbols_.definer(s));
    }
    return std::move(live_);
  }

private:
  void need(value_id v) {
    if (v == no_value || seen_[v])
      return;
    seen_[v] = true;
    pending_.push_back(v);
  }

  void need_node(node_id n) {
    if (n < 0 || live_[n])
      return;
    live_[n] = true;
    for (const auto* ids : {&g_.nodes[n].inputs, &g_.nodes[n].outputs})
      for (value_id v : *ids)
        need(v);
  }

  const graph& g_;
  std::vector<node_id> producer_;
  data_symbols symbols_;
  std::vector<bool> live_, seen_;
  std::vector<value_id> pending_;
};

} // namespace

void remove_dead(graph& g) {
  const std::vector<bool> live = liveness(g).run();
  std::vector<bool> used(g.values.size(), false);
  std::vector<node> nodes;
  for (size_t n = 0; n < g.nodes.size(); ++n) {
    if (!live[n])
      continue;
    for (auto* ids : {&g.nodes[n].inputs, &g.nodes[n].outputs})
      for (value_id v : *ids)
        if (v != no_value)
          used[v] = true;
    nodes.push_back(std::move(g.nodes[n]));
  }
  for (const auto* ids : {&g.inputs, &g.outputs})
    for (value_id v : *ids)
      used[v] = true;
  std::vector<value_id> renamed(g.values.size(), no_value);
  std::vector<value> values;
  for (size_t v = 0; v < g.values.size(); ++v)
    if (used[v]) {
      renamed[v] = static_cast<value_id>(values.size());
      values.push_back(std::move(g.values[v]));
    }
  const auto rename = [&](std::vector<value_id>& ids) {
    for (value_id& v : ids)
      v = v == no_value ? no_value : renamed[v];
  };
  for (node& n : nodes) {
    rename(n.inputs);
    rename(n.outputs);
  }
  rename(g.inputs);
  rename(g.outputs);
  rename(g.captured);
  g.nodes = std::move(nodes);
  g.values = std::move(values);
}

void replace_uses(graph& g, value_id from, value_id to) {
  for (node& n : g.nodes)
    std::replace(n.inputs.begin(), n.inputs.end(), from, to);
  std::replace(g.outputs.begin(), g.outputs.end(), from, to);
}

} // namespace troupe

#include "graph/graph.hpp"

#include <algorithm>
#include <map>
#include <queue>

namespace troupe {

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

std::string describe(const node& n) {
  return (n.domain.empty() ? "" : n.domain + ".") + n.op_type + " '" + n.name + "'";
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
  for (value_id v : g.inputs)
    mark_produced(g, produced, v, "the list of graph inputs");
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

namespace {

[[noreturn]] void report_cycle(const graph& g, const std::vector<int>& missing) {
  std::string names;
  int shown = 0, total = 0;
  for (size_t n = 0; n < g.nodes.size(); ++n)
    if (missing[n] > 0 && ++total && shown < 4) {
      names += (shown ? ", " : "") + describe(g.nodes[n]);
      ++shown;
    }
  fail(errc::invalid_model, "the graph has a cycle: {} nodes cannot be ordered, among them {}", total, names);
}

} // namespace

void sort_topologically(graph& g) {
  const adjacency a = adjacency_of(g);
  std::vector<int> missing(g.nodes.size(), 0);
  for (size_t v = 0; v < g.values.size(); ++v)
    if (a.producer[v] >= 0)
      for (node_id consumer : a.consumers[v])
        ++missing[consumer];
  // Lowest index first keeps an order that is already topological as it is.
  std::priority_queue<node_id, std::vector<node_id>, std::greater<>> ready;
  for (size_t n = 0; n < g.nodes.size(); ++n)
    if (missing[n] == 0)
      ready.push(static_cast<node_id>(n));
  std::vector<node_id> order;
  order.reserve(g.nodes.size());
  while (!ready.empty()) {
    const node_id n = ready.top();
    ready.pop();
    for (value_id v : g.nodes[n].outputs)
      if (v != no_value)
        for (node_id consumer : a.consumers[v])
          if (--missing[consumer] == 0)
            ready.push(consumer);
    order.push_back(n);
  }
  if (order.size() != g.nodes.size())
    report_cycle(g, missing);
  std::vector<node> ordered;
  ordered.reserve(g.nodes.size());
  for (node_id n : order)
    ordered.push_back(std::move(g.nodes[n]));
  g.nodes = std::move(ordered);
}

namespace {

/// Returns the node that defines each data-dependent symbol (see `infer_context::data_dependent`).
std::map<std::string, node_id> symbol_definers(const graph& g) {
  std::map<std::string, node_id> definers;
  for (size_t n = 0; n < g.nodes.size(); ++n)
    for (value_id v : g.nodes[n].outputs) {
      if (v == no_value || !g.values[v].dims)
        continue;
      for (const dim& d : *g.values[v].dims)
        if (const std::string name = d.symbol_name(); name.starts_with("#" + g.values[v].name + "."))
          definers.emplace(name, static_cast<node_id>(n));
    }
  return definers;
}

/// Appends the symbols that a value's dims and known elements mention.
void collect_symbols(const value& v, std::vector<std::string>& names) {
  for (const auto& dims : {v.dims, v.known})
    if (dims)
      for (const dim& d : *dims)
        d.collect_symbols(names);
}

/// Marks what `pending` depends on.
void mark_live(const graph& g, const adjacency& a, std::vector<value_id> pending, std::vector<bool>& live) {
  while (!pending.empty()) {
    const value_id v = pending.back();
    pending.pop_back();
    const node_id n = v == no_value ? -1 : a.producer[v];
    if (n < 0 || live[n])
      continue;
    live[n] = true;
    pending.insert(pending.end(), g.nodes[n].inputs.begin(), g.nodes[n].inputs.end());
  }
}

/// Returns the nodes that outputs depend on: through values, and through data-dependent dims.
std::vector<bool> live_nodes(const graph& g) {
  const adjacency a = adjacency_of(g);
  const auto definers = symbol_definers(g);
  std::vector<bool> live(g.nodes.size(), false);
  mark_live(g, a, g.outputs, live);
  for (bool grown = !definers.empty(); grown;) {
    std::vector<std::string> names;
    for (size_t n = 0; n < g.nodes.size(); ++n)
      if (live[n])
        for (const auto* ids : {&g.nodes[n].inputs, &g.nodes[n].outputs})
          for (value_id v : *ids)
            if (v != no_value)
              collect_symbols(g.values[v], names);
    grown = false;
    for (const std::string& name : names)
      if (const auto it = definers.find(name); it != definers.end() && !live[it->second]) {
        mark_live(g, a, g.nodes[it->second].outputs, live);
        grown = true;
      }
  }
  return live;
}

} // namespace

void remove_dead(graph& g) {
  const std::vector<bool> live = live_nodes(g);
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
  g.nodes = std::move(nodes);
  g.values = std::move(values);
}

void replace_uses(graph& g, value_id from, value_id to) {
  for (node& n : g.nodes)
    std::replace(n.inputs.begin(), n.inputs.end(), from, to);
  std::replace(g.outputs.begin(), g.outputs.end(), from, to);
}

} // namespace troupe

// A graph and the links in it: which node makes each value, and which nodes read it.
//
// Invariants: `uses(v)` counts input slots of living nodes and graph outputs; a node that is not alive makes and reads
// nothing.
#pragma once

#include "graph/graph.hpp"

#include <algorithm>

namespace troupe {

/// See the top of this file. Who changes the graph keeps the links right: `graph_editor`.
class linked_graph {
public:
  graph& model() { return graph_; }
  const graph& model() const { return graph_; }
  size_t node_count() const { return graph_.nodes.size(); }
  bool alive(node_id n) const { return alive_[n]; }
  node& at(node_id n) { return graph_.nodes[n]; }
  const node& at(node_id n) const { return graph_.nodes[n]; }
  value& val(value_id v) { return graph_.values[v]; }
  const value& val(value_id v) const { return graph_.values[v]; }

  /// Returns the node that produces `v`, -1 for inputs, constants and host-known values.
  node_id producer(value_id v) const { return v == no_value ? -1 : producer_[v]; }
  /// Returns how many input slots and graph outputs read `v`.
  uint32_t uses(value_id v) const { return uses_[v]; }
  bool is_output(value_id v) const { return is_output_[v]; }
  /// Returns whether exactly one input slot reads `v` and it is not a graph output: it may vanish into a fusion.
  bool used_once(value_id v) const { return uses_[v] == 1 && !is_output_[v]; }
  /// Returns the living nodes that read `v`, each once, ascending; perhaps too one of very many inputs that did once.
  std::vector<node_id> consumers(value_id v) const;
  /// Returns the only node that reads `v`, in however many slots; -1 if there are more, none, or `v` is an output.
  node_id only_consumer(value_id v) const;

protected:
  explicit linked_graph(graph& g) : graph_(g) { relink(); }
  ~linked_graph() = default;
  linked_graph(const linked_graph&) = delete;
  linked_graph& operator=(const linked_graph&) = delete;

  /// Finds all links anew.
  void relink();
  value_id add_value(value v);
  /// Adds a node after all others.
  node_id append(node n);
  /// A node that has come into the graph makes its outputs and reads its inputs.
  void link(node_id n);
  void add_use(value_id v, node_id n);
  /// `n`, as it was, makes its outputs no more.
  void drop_outputs(node_id id, const node& n);
  /// A node reads its inputs no more.
  void drop_inputs(const node& n);
  void drop_use(value_id v);

  graph& graph_;
  std::vector<char> alive_;
  std::vector<node_id> producer_;
  std::vector<uint32_t> uses_;
  std::vector<char> is_output_;
  std::vector<std::vector<node_id>> readers_; // may hold stale entries
  std::vector<node_id> unread_;               // nodes that may have become unread by the change in progress

private:
  bool reads(node_id n, value_id v) const;
};

} // namespace troupe

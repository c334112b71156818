// A graph under edit: producers and uses of every value, kept right through every change.
//
// Passes visit nodes by index and rewrite in place; a fused node takes the index of the last node of its pattern, so
// that the order stays topological. A change costs time in proportion to the uses it touches, so that a pass over the
// graph is near-linear. Nodes whose outputs have no reader any more go at once, except those that define data-dependent
// dims.
//
// Every node that a pass makes is inferred as it enters the graph: values that it alone makes are what inference says,
// and a node that takes the place of others is refused unless inference gives it the types and dims of the values that
// it takes over. So a pass that claims too much (groups that do not divide the channels, a function of floats for
// integers) leaves the graph as it was, and no value keeps a constant, or dims, of one that it was copied from: passes
// name new values, and state nothing else of them.
//
// Invariants: `uses(v)` counts input slots of living nodes and graph outputs; graph outputs keep their value (id and
// name).
#pragma once

#include "graph/graph.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

class graph_editor {
public:
  explicit graph_editor(graph& g);

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
  /// Returns whether exactly one input slot reads `v` and it is no graph output: it may vanish into a fusion.
  bool used_once(value_id v) const { return uses_[v] == 1 && !is_output_[v]; }
  /// Returns the living nodes that read `v`, each once, ascending; perhaps too one of very many inputs that did once.
  std::vector<node_id> consumers(value_id v) const;
  /// Returns the only node that reads `v`, in however many slots; -1 if there are more, none, or `v` is an output.
  node_id only_consumer(value_id v) const;

  /// Adds a value that a node is to make: its inference says what it is.
  value_id add_result(const std::string& name);
  /// Adds a constant.
  value_id add_constant(const std::string& name, tensor bytes);
  /// Adds the constant that `recipe` makes.
  value_id add_constant(const std::string& name, weight_ptr recipe);
  /// Adds a host-known int64 vector (a Reshape's shape): a constant if no element is symbolic.
  value_id add_known(const std::string& name, const symbolic_shape& elements);
  /// Adds a node after all others; `tidy` sorts. Its outputs must have no producer. Throws what inference throws.
  node_id add_node(node n);

  /// Puts `replacement` in the place of node `n`, whose outputs it takes over. Returns false, changing nothing, if
  /// inference refuses it or gives an output another type or other dims.
  [[nodiscard]] bool replace(node_id n, node replacement);
  /// The same for `replacement`, which has outputs of any of the nodes `old`, in the place of all of them: after all
  /// other nodes; `tidy` sorts.
  [[nodiscard]] bool replace_all(std::span<const node_id> old, node replacement);
  /// Makes input `slot` of node `n` read `v`.
  void set_input(node_id n, size_t slot, value_id v);
  /// Makes every reader of `from` read `to`, graph outputs aside.
  void replace_uses(value_id from, value_id to);
  /// Takes single-output node `n` out: its readers read `to` instead. Where its output is a graph output, the producer
  /// of `to` writes that value itself; returns false, changing nothing, if that is impossible.
  bool bypass(node_id n, value_id to);
  /// Removes a node; its outputs lose their producer.
  void erase(node_id n);

  /// Drops erased nodes and, if nodes were added, sorts topologically. Node ids change.
  void tidy();

private:
  value_id add_value(value v);
  bool infer(node& n);
  bool takes_over(node& replacement);
  node_id append(node n);
  bool reads(node_id n, value_id v) const;
  void add_use(value_id v, node_id n);
  void drop_use(value_id v);
  void remove(node_id n);
  void erase_unread();
  bool unread(node_id n) const;
  void rebuild();

  graph& graph_;
  std::vector<char> alive_;
  std::vector<node_id> producer_;
  std::vector<uint32_t> uses_;
  std::vector<char> is_output_;
  std::vector<std::vector<node_id>> readers_; // may hold stale entries
  std::vector<node_id> unread_;               // nodes that may have become unread by the change in progress
  bool appended_ = false;
};

/// Returns whether a node's output dims depend on data: later values may mention the symbols it defines.
bool defines_symbols(const graph& g, const node& n);

} // namespace troupe

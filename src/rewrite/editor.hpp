// A graph under edit: its links (linked_graph.hpp) are kept right through every change.
//
// Passes visit nodes by index and rewrite in place; a fused node takes the index of the last node of its pattern, so
// that the order stays topological. A change costs time in proportion to the uses it touches, so that a pass over the
// graph is near-linear. Nodes whose outputs have no reader any more go at once, except those that define data-dependent
// dims.
//
// Every node that a pass makes is inferred as it enters the graph. Values that only this node makes get the types and
// dims that inference gives. A node that takes the place of others is refused unless inference gives it the types and
// dims of the values that it takes over. So a pass that claims too much (groups that do not divide the channels, a
// function of floats for integers) leaves the graph as it was, and no value keeps a constant, or dims, of one that it
// was copied from: passes name new values, and state nothing else of them.
//
// Invariant: graph outputs keep their value (id and name).
#pragma once

#include "rewrite/linked_graph.hpp"

#include <utility>

namespace troupe {

class graph_editor : public linked_graph {
public:
  explicit graph_editor(graph& g) : linked_graph(g) {}

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
  bool infer(node& n);
  bool takes_over(node& replacement);
  void remove(node_id n);
  void erase_unread();
  bool unread(node_id n) const;

  bool appended_ = false;
};

/// Calls `f(n)`, the step of a pass, for each living node in the order of the indices, also for those that `f` adds.
/// Returns whether a call returned true.
template <class F>
bool each_node(const graph_editor& e, const F& f) {
  bool changed = false;
  for (node_id n = 0; n < static_cast<node_id>(e.node_count()); ++n)
    changed |= e.alive(n) && f(n);
  return changed;
}

/// The same, but not for the nodes that `f` adds.
template <class F>
bool each_present_node(const graph_editor& e, const F& f) {
  const auto count = static_cast<node_id>(e.node_count());
  return each_node(e, [&](node_id n) { return n < count && f(n); });
}

/// Returns whether a node's output dims depend on data: later values may mention the symbols it defines.
bool defines_symbols(const graph& g, const node& n);

} // namespace troupe

// Symbols of dims that depend on data (their names begin with '#'): which values mention them, which node defines each.
#pragma once

#include "graph/graph.hpp"

#include <unordered_map>

namespace troupe {

/// A dim that depends on data: it is dim `axis` of `value`.
struct data_symbol {
  std::string name; // begins with '#'
  value_id value = no_value;
  uint32_t axis = 0;
};

/// The data-dependent symbols of a graph, except those that its inputs' dims mention (see the top of this file).
///
/// A node defines a symbol that is a dim of one of its outputs and that no input of it mentions. A node may use a
/// symbol without a path of values from the definer: host-known elements carry it, or its own output's dims. So the
/// definer is an operand like any other for liveness and order.
class data_symbols {
public:
  using id = uint32_t;

  explicit data_symbols(const graph& g);

  size_t size() const { return names_.size(); }
  /// Returns the symbols that dims and host-known elements of `v` mention.
  std::span<const id> of_value(value_id v) const {
    return size() ? std::span<const id>(of_value_[v]) : std::span<const id>();
  }
  /// Returns the node that defines a symbol, -1 if there is none.
  node_id definer(id s) const { return definer_[s]; }
  const std::string& name(id s) const { return names_[s]; }
  /// Returns all definitions in the order of their nodes.
  std::vector<data_symbol> definitions() const;

private:
  void collect(const graph& g);
  void find_definitions(const graph& g, node_id n);

  std::vector<std::vector<id>> of_value_; // empty if there are no symbols
  std::unordered_map<std::string, id> ids_;
  std::vector<std::string> names_;
  std::vector<node_id> definer_;
  std::vector<data_symbol> symbols_;
};

} // namespace troupe

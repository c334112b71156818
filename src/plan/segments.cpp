#include "plan/segments.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace troupe {
namespace {

using symbol_id = uint32_t;

/// Which data-dependent symbols each value mentions, and which node defines each.
class symbol_table {
public:
  symbol_table(const graph& program, std::span<const node_id> producer)
      : program_(program), of_value_(program.values.size()) {
    std::set<std::string> given;
    for (value_id v : program.inputs)
      for (const std::string& name : names_in(program.values[v]))
        given.insert(name);
    for (size_t v = 0; v < of_value_.size(); ++v)
      for (const std::string& name : names_in(program.values[v]))
        if (!given.contains(name))
          of_value_[v].push_back(id_of(name));
    definer_.assign(names_.size(), -1);
    symbols_.resize(names_.size());
    for (size_t n = 0; n < program.nodes.size() && !names_.empty(); ++n)
      find_definitions(static_cast<node_id>(n));
    check_defined(producer);
  }

  size_t size() const { return names_.size(); }
  std::span<const symbol_id> of_value(value_id v) const { return of_value_[v]; }
  node_id definer(symbol_id s) const { return definer_[s]; }
  const std::string& name(symbol_id s) const { return names_[s]; }

  /// Returns the definitions in the order of their nodes.
  std::vector<data_symbol> definitions() const {
    std::vector<symbol_id> order(symbols_.size());
    for (symbol_id s = 0; s < order.size(); ++s)
      order[s] = s;
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return definer_[a] < definer_[b]; });
    std::vector<data_symbol> sorted;
    for (symbol_id s : order)
      sorted.push_back(symbols_[s]);
    return sorted;
  }

private:
  static std::vector<std::string> names_in(const value& v) {
    std::vector<std::string> names;
    if (v.dims)
      for (const dim& d : *v.dims)
        d.collect_symbols(names);
    if (v.known)
      for (const dim& d : *v.known)
        d.collect_symbols(names);
    std::erase_if(names, [](const std::string& name) { return name.empty() || name[0] != '#'; });
    return names;
  }

  symbol_id id_of(const std::string& name) {
    const auto [it, inserted] = ids_.try_emplace(name, static_cast<symbol_id>(names_.size()));
    if (inserted)
      names_.push_back(name);
    return it->second;
  }

  /// A node defines a symbol that is a dim of an output and that none of its inputs mention.
  void find_definitions(node_id n) {
    const node& call = program_.nodes[n];
    const auto is_given = [&](symbol_id s) {
      return std::any_of(call.inputs.begin(), call.inputs.end(), [&](value_id v) {
        return v != no_value && std::find(of_value_[v].begin(), of_value_[v].end(), s) != of_value_[v].end();
      });
    };
    for (value_id v : call.outputs) {
      if (v == no_value || of_value_[v].empty() || !program_.values[v].dims)
        continue;
      const symbolic_shape& dims = *program_.values[v].dims;
      for (uint32_t axis = 0; axis < dims.size(); ++axis) {
        const auto it = ids_.find(dims[axis].symbol_name());
        if (it == ids_.end() || definer_[it->second] >= 0 || is_given(it->second))
          continue;
        definer_[it->second] = n;
        symbols_[it->second] = {it->first, v, axis};
      }
    }
  }

  void check_defined(std::span<const node_id> producer) const {
    for (size_t v = 0; v < of_value_.size(); ++v)
      for (symbol_id s : of_value_[v])
        if (definer_[s] < 0)
          fail(errc::unsupported, "the shape of '{}'{} depends on '{}', which nothing computes",
               program_.values[v].name, producer[v] >= 0 ? " (" + describe(program_.nodes[producer[v]]) + ")" : "",
               names_[s]);
  }

  const graph& program_;
  std::vector<std::vector<symbol_id>> of_value_;
  std::unordered_map<std::string, symbol_id> ids_;
  std::vector<std::string> names_;
  std::vector<node_id> definer_;
  std::vector<data_symbol> symbols_;
};

/// Returns the earliest segment of node `n`, given those of the nodes it depends on.
uint32_t earliest_segment(const graph& program, std::span<const node_id> producer, const symbol_table& table,
                          const std::vector<uint32_t>& of_node, node_id n) {
  uint32_t earliest = 0;
  const auto wait_for_symbols = [&](value_id v) {
    for (symbol_id s : table.of_value(v))
      if (table.definer(s) != n)
        earliest = std::max(earliest, of_node[table.definer(s)] + 1);
  };
  for (value_id v : program.nodes[n].inputs) {
    if (v == no_value)
      continue;
    if (producer[v] >= 0)
      earliest = std::max(earliest, of_node[producer[v]]);
    wait_for_symbols(v);
  }
  for (value_id v : program.nodes[n].outputs)
    if (v != no_value)
      wait_for_symbols(v);
  return earliest;
}

/// Segments of all nodes. One pass does where symbols are used behind their nodes in the order; host-known elements can
/// carry a symbol to a node that comes before, so passes are repeated until nothing changes.
std::vector<uint32_t> segments_of_nodes(const graph& program, std::span<const node_id> producer,
                                        const symbol_table& table) {
  std::vector<uint32_t> of_node(program.nodes.size(), 0);
  for (bool changed = table.size() > 0; changed;) {
    changed = false;
    for (node_id n = 0; n < static_cast<node_id>(of_node.size()); ++n) {
      const uint32_t segment = earliest_segment(program, producer, table, of_node, n);
      if (segment > table.size())
        fail(errc::invalid_model, "{}: its shapes depend on themselves through data", describe(program.nodes[n]));
      changed = changed || segment != of_node[n];
      of_node[n] = segment;
    }
  }
  return of_node;
}

} // namespace

segmentation find_segments(const graph& program, std::span<const node_id> producer) {
  const symbol_table table(program, producer);
  segmentation result;
  result.of_node = segments_of_nodes(program, producer, table);
  result.symbols = table.definitions();
  result.of_value.assign(program.values.size(), 0);
  for (value_id v = 0; v < static_cast<value_id>(program.values.size()); ++v) {
    if (producer[v] >= 0)
      result.of_value[v] = result.of_node[producer[v]];
    for (symbol_id s : table.of_value(v))
      result.of_value[v] = std::max(result.of_value[v], result.of_node[table.definer(s)] + 1);
  }
  for (uint32_t segment : result.of_node)
    result.count = std::max(result.count, segment + 1);
  // A host-known output needs its elements bound, even where no node is left to run.
  for (value_id v : program.outputs)
    if (producer[v] < 0)
      result.count = std::max(result.count, result.of_value[v] + 1);
  return result;
}

} // namespace troupe

#include "plan/cut/segments.hpp"

#include <algorithm>

namespace troupe {
namespace {

void check_defined(const graph& program, std::span<const node_id> producer, const data_symbols& table) {
  for (value_id v = 0; v < static_cast<value_id>(producer.size()); ++v)
    for (data_symbols::id s : table.of_value(v))
      if (table.definer(s) < 0)
        fail(errc::unsupported, "the shape or content of '{}'{} depends on '{}', which nothing computes",
             program.values[v].name, producer[v] >= 0 ? " (" + describe(program.nodes[producer[v]]) + ")" : "",
             table.name(s));
}

/// Returns the earliest segment of node `n`, given those of the nodes it depends on.
uint32_t earliest_segment(const graph& program, std::span<const node_id> producer, const data_symbols& table,
                          const std::vector<uint32_t>& of_node, node_id n) {
  uint32_t earliest = 0;
  const auto wait_for_symbols = [&](value_id v) {
    for (data_symbols::id s : table.of_value(v))
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

/// Segments of all nodes. One pass does if symbols are used after their nodes in the order; host-known elements can
/// carry a symbol to a node that comes before, so passes are repeated until nothing changes.
std::vector<uint32_t> segments_of_nodes(const graph& program, std::span<const node_id> producer,
                                        const data_symbols& table) {
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
  const data_symbols table(program);
  check_defined(program, producer, table);
  segmentation result;
  result.of_node = segments_of_nodes(program, producer, table);
  result.symbols = table.definitions();
  result.of_value.assign(program.values.size(), 0);
  for (value_id v = 0; v < static_cast<value_id>(program.values.size()); ++v) {
    if (producer[v] >= 0)
      result.of_value[v] = program.values[v].dims ? result.of_node[producer[v]] : no_segment;
    for (data_symbols::id s : table.of_value(v))
      result.of_value[v] = std::max(result.of_value[v], result.of_node[table.definer(s)] + 1);
  }
  for (uint32_t segment : result.of_node)
    result.count = std::max(result.count, segment + 1);
  // A host-known output needs its elements bound, even if no node is left to run.
  for (value_id v : program.outputs)
    if (producer[v] < 0)
      result.count = std::max(result.count, result.of_value[v] + 1);
  return result;
}

} // namespace troupe

// The nodes that devices ran in a run, and what each waited for: what formats of others want that know tasks alone.
#pragma once

#include "plan/plan.hpp"
#include "trace/run_trace.hpp"

#include <compare>

namespace troupe {

/// A value that a node reads, of another node that a device ran.
struct ran_read {
  size_t from = 0; // where that node is in the list
  value_id value = 0;

  auto operator<=>(const ran_read&) const = default;
};

/// A node and when which device ran it. Times as in `device_timing`.
struct ran_node {
  node_id node = 0;
  device_index device = 0;
  uint32_t segment = 0;
  int64_t sent_ns = 0, begin_ns = 0, end_ns = 0;
  std::vector<ran_read> reads; // ascending, each once
};

/// Returns the nodes of a run in the order of their begins, each after those that it reads. Those that no device ran,
/// such as views, pass on what they read. What bodies of control flow did is part of the node that runs them.
std::vector<ran_node> ran_nodes_of(const run_trace& trace);

/// Returns the name of a node, or its operator's if it has none.
std::string ran_name(const run_trace& trace, node_id n);

/// Returns the bytes of a value in a segment; −1 if they are not known.
int64_t ran_bytes(const run_trace& trace, uint32_t segment, value_id v);

} // namespace troupe

// The plan: which device runs which nodes, in which chunks, and what moves between devices.
//
// A plan is immutable plain data: no pointers to devices, no atomics, no run state. It is made once for a rewritten graph, a
// device set and options, with dims that may still be symbolic. `bind` gives it concrete dims (bound_plan.hpp); an execution
// holds what changes during a run (ready_set.hpp).
//
// Invariants (checked by `verify`): every node is in exactly one chunk; the chunk graph is acyclic and `chunks` is a
// topological order of it; every chunk lies on a path to an output; a value crosses to a device at most once; chunks of one
// device run in the order of their ids; a chunk never waits for another device in its middle.
//
// Segments: a node whose output shape depends on data ends a segment. Segment k is bound when segment k − 1 has run; values
// that cross a segment boundary go through the host, which has to look at the data there anyway.
#pragma once

#include "graph/dim_program.hpp"
#include "graph/graph.hpp"
#include "plan/device_info.hpp"

namespace troupe {

using device_index = uint32_t;
using chunk_id = uint32_t;

/// Nodes that run as one unit on one device (see the top of this file).
struct chunk {
  device_index device = 0;
  uint32_t segment = 0;
  /// Nodes in execution order; may be empty (a chunk that only moves values).
  std::vector<node_id> nodes;
  /// Values that come from the host before the first node: model inputs and values of other devices or segments.
  std::vector<value_id> uploads;
  /// Values that go to the host after the last node: model outputs and values other devices or segments need.
  std::vector<value_id> downloads;
  /// Chunks that must be complete (other devices) or submitted (the same device) before this one is submitted; ascending.
  std::vector<chunk_id> predecessors;
  std::vector<chunk_id> dependents; // ascending
  /// predecessors.size(): what every execution's counter starts from. Roots are found by this, never by running counters.
  uint32_t initial_dependency_count = 0;
  /// Whether some download is a model output.
  bool produces_outputs = false;
};

/// Positions of one value's dims, and of its host-known elements, in the result of `plan::dims.evaluate`.
struct value_slots {
  std::vector<dim_program::slot> dims;
  std::vector<dim_program::slot> known;
};

struct plan {
  hash128 key; // of everything the plan depends on
  std::shared_ptr<const graph> program; // rewritten, resolved, inferred, layouts assigned
  std::vector<device_info> devices;
  std::vector<device_index> placement; // by node
  std::vector<chunk> chunks;           // by chunk_id; ascending by segment
  uint32_t segment_count = 1;
  /// The value whose bytes hold each value's: itself, or the source of a view (`aliasing::view`), through chains of views.
  std::vector<value_id> storage;
  /// All symbolic dims and host-known elements of the program, and where each value finds its own. Slots of a later segment
  /// depend on symbols that are bound when the earlier ones have run: one program a segment.
  std::vector<dim_program> dims;  // by segment
  std::vector<value_slots> slots; // by value, into the program of the segment that first holds the value
  std::vector<uint32_t> segment_of_value;
};

/// How nodes are placed on devices.
enum class placement_policy : uint8_t {
  single,      // everything on the first device
  round_robin, // alternating by node over all devices
};

/// Returns the policy called `name` ("single", "round-robin"); throws `errc::invalid_argument` for others.
placement_policy parse_policy(std::string_view name);

struct plan_options {
  placement_policy policy = placement_policy::single;
};

/// Plans a rewritten graph on `devices` (at least one). Throws `errc::unsupported`, `errc::invalid_model`.
std::shared_ptr<const plan> make_plan(std::shared_ptr<const graph> program, std::vector<device_info> devices,
                                      const plan_options& options);

/// Checks the invariants above; throws `errc::internal` naming the chunk and what is wrong.
void verify(const plan& p);

} // namespace troupe

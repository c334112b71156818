// The plan: which device runs which nodes, in which chunks, and what moves between devices.
//
// A plan is immutable plain data: no pointers to devices, no atomics, no run state. It is made once for a rewritten
// graph, a device set and options, with dims that may still be symbolic. `bind_segment` gives it concrete dims
// (bound_plan.hpp); an execution holds what changes during a run (ready_set.hpp).
//
// Invariants (checked by `verify`): every node is in exactly one chunk; the chunk graph is acyclic and `chunks` is a
// topological order of it; every chunk is on a path to an output; a value crosses to a device at most once; each
// upload, and each value that the caller needs, comes by one transfer, from where it is made, by the route that its
// ends need; chunks of one device run in the order of their ids; a chunk never waits for another device in its middle.
// A tensor has one writer; one whose parts are written straight into it (`is_joined`) has one a part, and nothing but
// its Concat reads the parts as values of their own.
//
// Control flow: each If, Loop or Scan is a chunk of its own, on a device of its own after the real ones
// (`device_kind::control`) that means the coordinator: so values come to it and go from it like to any device with host
// memory, and control-flow nodes that do not depend on each other run at the same time. Its bodies are planned on the
// same real devices (`plan::bodies`).
//
// Segments: a node whose output shape depends on data ends a segment. Segment k is bound when segment k − 1 has run;
// values that cross a segment boundary go through the host, which has to look at the data there anyway.
#pragma once

#include "graph/data_symbols.hpp"
#include "graph/dim_program.hpp"
#include "graph/graph.hpp"
#include "plan/device_info.hpp"
#include "troupe/options.hpp"

namespace troupe {

using device_index = uint32_t;
using chunk_id = uint32_t;

/// Nodes that run as one unit on one device (see the top of this file).
struct chunk {
  device_index device = 0;
  uint32_t segment = 0;
  /// Nodes in execution order; may be empty (a chunk that only moves values).
  std::vector<node_id> nodes;
  /// On devices without host memory (GPUs): wave w is nodes[wave_begin[w] … wave_begin[w + 1]). Nodes of one wave may
  /// run at the same time; a barrier stands between waves, and at the chunk's ends. A view, or a Concat whose parts are
  /// in place, launches nothing and is in the wave of what makes its bytes, after it, or in the first. Empty on
  /// host-memory devices, where nodes run one after the other.
  std::vector<uint32_t> wave_begin;
  /// Values that come from the host before the first node: model inputs and values of other devices or segments.
  std::vector<value_id> uploads;
  /// Values that go to the host after the last node: model outputs and values other devices or segments need.
  std::vector<value_id> downloads;
  /// Chunks that must be complete (other devices) or submitted (the same device, peers) before this one is submitted;
  /// ascending.
  std::vector<chunk_id> predecessors;
  std::vector<chunk_id> dependents; // ascending
  /// predecessors.size(): what every execution's counter starts from. Roots are found by this, never by running
  /// counters.
  uint32_t initial_dependency_count = 0;
  /// Whether some download is a model output.
  bool produces_outputs = false;

  uint32_t wave_count() const { return wave_begin.empty() ? 0 : static_cast<uint32_t>(wave_begin.size() - 1); }
  uint32_t barrier_count() const { return wave_count() > 1 ? wave_count() - 1 : 0; }
  std::span<const node_id> wave(uint32_t w) const {
    return std::span(nodes).subspan(wave_begin[w], wave_begin[w + 1] - wave_begin[w]);
  }
};

/// How a value gets from one end of a transfer to the other.
enum class transfer_route : uint8_t {
  direct,     // both ends compute in the host's memory: nothing is copied
  host_block, // an end has memory of its own: through one block of the host's memory
  remote,     // the ends are on different hosts
  peer,       // as `host_block`, but the reader itself waits for the writer's work (`are_peers`)
};

/// Returns the enumerator's name.
std::string_view to_string(transfer_route route);

/// One value on its way from where it is made to where it is read.
struct transfer {
  value_id value = no_value;
  /// The chunk that makes it; nullopt if the caller gives it.
  std::optional<chunk_id> from;
  /// The chunk that reads it; nullopt if it goes to the caller, or the session looks at its shape.
  std::optional<chunk_id> to;
  transfer_route route = transfer_route::direct;

  bool operator==(const transfer&) const = default;
};

/// Positions of one value's dims, and of its host-known elements, in the result of `plan::dims.evaluate`.
struct value_slots {
  std::vector<dim_program::slot> dims;
  std::vector<dim_program::slot> known;
};

/// When the storage of one value is in use, in positions along its device's order within a segment (both inclusive).
struct lifetime {
  value_id value = no_value; // a root (see `plan::storage`)
  uint32_t first = 0;
  uint32_t last = 0;
  /// Range in `device_lifetimes::candidates` of what this value may overwrite.
  uint32_t reuse_begin = 0, reuse_end = 0;
};

/// An input that dies where an `aliasing::in_place` output is made; the two share bytes if their shapes turn out equal.
struct reuse_candidate {
  value_id input = no_value;
  uint32_t lifetime = 0; // of the input's root
};

/// What a device's arena holds in one segment, ascending by `first`. Each chunk takes a position for its uploads, one
/// for each wave (on host-memory devices for each node), and one for its downloads.
struct device_lifetimes {
  std::vector<lifetime> values;
  std::vector<reuse_candidate> candidates;
  uint32_t positions = 0;
};

struct saved_plan;
class policy_library;

struct plan_options {
  placement_policy policy = placement_policy::single;
  /// A plan to make again (saved_plan.hpp): devices and chunks are as it says, whatever the other options. Null for
  /// none.
  std::shared_ptr<const saved_plan> saved;
  /// Hold under every policy.
  std::vector<placement_pin> pins;
  /// What symbolic dims are likely to be, for predicted times and memory; others count as `representative_dim`.
  bindings expected;
  /// Bytes that `greedy_memory` may fill, by device; empty: each device's `memory_bytes`.
  std::vector<int64_t> budgets;
  /// Whether inputs and outputs mostly stay on their device between runs: chunks are not cut to hide their copies then.
  bool values_stay = false;
  /// What `placement_policy::plug_in` calls (place/policy_library.hpp); null unless the caller has one.
  std::shared_ptr<const policy_library> plugin;
  /// With `placement_policy::split`: the dim of results along which nodes are cut, whatever it costs; nullopt: the one
  /// that is predicted to be fastest, or one device.
  std::optional<int> split_along;
};

/// How a plan's nodes have been cut (plan/split): what makes the same cut again.
struct plan_split {
  int along = 0;                 // see `split_dims`
  std::vector<std::string> team; // names of devices …
  std::vector<int64_t> begin;    // … and their shares (`split_team::begin`)
};

struct plan;

/// One body of a control-flow node, planned.
struct planned_body {
  node_id node = -1;
  std::string name; // of the attribute
  std::shared_ptr<const plan> compiled;
};

struct plan {
  hash128 key;                          // of everything the plan depends on
  std::shared_ptr<const graph> given;   // what was planned …
  plan_options options;                 // … and how, pins of bodies included
  hash128 structure;                    // of the model: which saved plans fit it (saved_plan.hpp)
  std::shared_ptr<const graph> program; // rewritten, resolved, inferred, cut for a team of devices, layouts assigned
  std::optional<plan_split> split;      // how it was cut
  /// Dims that must not be negative at a binding: parts would be too short for the cut. See `is_for`.
  std::vector<dim> nonnegative;
  std::vector<device_info> devices; // the real ones, then one for each control-flow node
  /// What placement did that its reader should know: what did not fit where, and went where instead. For people.
  std::vector<std::string> remarks;
  std::vector<device_index> placement; // by node
  std::vector<bool> inserted;          // by node: whether planning added it (layouts, pieces of transfers)
  std::vector<planned_body> bodies;    // ascending by node, in the order of `bodies_of`
  std::vector<chunk> chunks;           // by chunk_id; ascending by segment
  uint32_t segment_count = 1;
  std::vector<chunk_id> segment_begin; // chunks of segment s are [segment_begin[s], segment_begin[s + 1]); may be none
  std::vector<chunk_id> chunk_of_node; // by node
  /// In the order of the chunks: what a chunk takes, in the order of its uploads, then what leaves it for the caller.
  std::vector<transfer> transfers;
  std::vector<node_id> producer;    // by value; -1 for inputs, constants and host-known values
  std::vector<data_symbol> symbols; // that depend on data, in the order of their nodes; their values are downloaded
  /// The value whose bytes hold each value's on the device that produces it: itself, or the source of a view
  /// (`aliasing::view`), through chains of views. A view of a value that its device uploads has the upload as its
  /// source. Of a part: the output of the Concat that it is written into (cut/joined_parts.hpp). See `root_on`.
  std::vector<value_id> storage;
  /// All symbolic dims and host-known elements of the program, and where each value finds its own. Slots of a later
  /// segment depend on symbols that are bound when the earlier ones have run: one program a segment.
  std::vector<dim_program> dims;  // by segment
  std::vector<value_slots> slots; // by value, into the program of the value's segment
  /// The segment at whose binding a value's dims are known. Greater than its node's segment if the dims depend on the
  /// node's data: the kernel allocates such a value (`kernel_context::allocate`); nothing in its own segment reads it.
  std::vector<uint32_t> segment_of_value;
  /// Host-known values that nodes of a segment read, or that are model outputs; by segment.
  std::vector<std::vector<value_id>> known_values;
  /// Nodes whose operands' dims only a binding can compare (operand_checks.hpp); by segment.
  std::vector<std::vector<node_id>> open_operands;
  /// The same of `graph::asked`: nodes of that graph.
  std::vector<std::vector<node_id>> open_calls;
  std::vector<device_lifetimes> lifetimes; // by segment * devices.size() + device
  std::vector<int64_t> weight_bytes;       // by device: of the constants that its nodes read, each once
};

/// Returns the plan's devices without those that stand for control-flow nodes.
std::vector<device_info> real_devices(const plan& p);

/// Returns whether a node is a view: its output is its first input's bytes, so that no device has work with it.
bool is_view(const node& n);

/// Returns whether `v` is written straight into its part of a Concat's output.
bool is_part(const plan& p, value_id v);

/// Returns whether a node is a Concat whose inputs are parts of its output, so that it moves nothing.
bool is_joined(const plan& p, const node& n);

/// Returns whether no device has work with a node: it is a view or a joined Concat.
bool launches_nothing(const plan& p, const node& n);

/// Returns the value whose bytes hold `v` for nodes of `c`: `plan::storage` if c's device produces it in c's segment,
/// else `v` itself (an upload, a constant or a host-known value).
value_id root_on(const plan& p, const chunk& c, value_id v);

/// Returns whether a chunk of another device waits for chunk `id`.
bool is_awaited(const plan& p, chunk_id id);

/// Adds the data-dependent symbols that `v`, computed with shape `dims`, gives values to (see `plan::symbols`).
void bind_data_symbols(const plan& p, value_id v, const shape& dims, bindings& values);

/// Returns whether a plan can be bound to values of its symbols: parts are long enough for its cut.
bool is_for(const plan& p, const bindings& values);

/// Plans a rewritten graph on `devices` (at least one). Nodes of the plan's program have names of their own, in UTF-8.
/// Throws `errc::unsupported`, `errc::invalid_model`, `errc::invalid_plan`.
std::shared_ptr<const plan> make_plan(const std::shared_ptr<const graph>& program, std::vector<device_info> devices,
                                      const plan_options& options);

/// What a plan follows from once its nodes are placed, ordered and cut: its own members of these names.
struct cut_program {
  std::shared_ptr<const graph> program;
  std::vector<device_info> devices;
  std::vector<device_index> placement;
  std::vector<bool> inserted;
  std::vector<chunk_id> chunk_of_node;
};

/// Makes a plan again, down to every id, for devices to run. It does not know what it was made of: `given`, `options`
/// and `bodies` are empty. The program must be as `make_plan` leaves it: in topological order, resolved and inferred.
/// Throws `errc::invalid_plan` if the chunks cannot be a plan's, and what `make_plan` throws.
std::shared_ptr<const plan> restore_plan(cut_program from);

/// Checks the invariants above; throws `errc::internal` naming the chunk and what is wrong.
void verify(const plan& p);
/// The same without the bodies.
void verify_chunks(const plan& p);

} // namespace troupe

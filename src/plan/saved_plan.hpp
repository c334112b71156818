// A plan that was saved as JSON (`to_json`), perhaps edited, and is to be made again.
//
// What counts in the file is which nodes run together in which chunk on which device: node names by chunk, and the
// chunk's device. Everything else (waves, transfers, memory, predecessors) follows from that and is derived afresh, so
// that it cannot contradict. Nodes that planning inserts itself (layout changes, pieces of transfers) are marked: where
// they are inserted again, they are in the same chunk again; where they are not, nothing is missing; new ones join a
// neighbour's chunk.
//
// A file fits one rewritten model: `structure` is a hash of its operators, attributes, types, dims and names, not of
// its weights' values, so that a fine-tuned model keeps its plan.
#pragma once

#include "plan/plan.hpp"

#include <filesystem>

namespace troupe {

/// One node of a saved chunk.
struct saved_node {
  std::string name;
  std::string op_type;
  bool inserted = false; // by planning; not a node of the model
};

/// Nodes that run as one unit on one device.
struct saved_chunk {
  std::string device;
  std::vector<saved_node> nodes;
};

/// A saved plan as read, not yet compared with a model. Immutable, plain data.
struct saved_plan {
  std::string source;    // the file, for messages
  std::string structure; // of the model: `plan::structure` in hexadecimal digits
  std::vector<saved_chunk> chunks;
  std::optional<plan_split> split; // how nodes were cut: chunks name the parts
  hash128 key;                     // of the content
};

/// The version of the JSON form that `to_json` writes and `parse_saved_plan` reads.
inline constexpr int saved_plan_version = 1;

/// Reads the JSON form of a plan. Throws `errc::invalid_plan` naming `source` and what is missing or malformed.
std::shared_ptr<const saved_plan> parse_saved_plan(std::string_view json, const std::string& source);

/// Reads a plan file. Throws `errc::io`, and what `parse_saved_plan` throws.
std::shared_ptr<const saved_plan> read_saved_plan(const std::filesystem::path& file);

/// Which chunk of the saved plan each node is in, by node.
using chunk_assignment = std::vector<uint32_t>;

/// Orders the nodes of `g` chunk by chunk as `saved` says and returns every node's device; `chunks` becomes every
/// node's chunk. `g` must be topologically sorted, resolved and inferred, its nodes' names unique; `structure` is its
/// `structure_of`. Throws `errc::invalid_plan` naming the culprit: a node or device that is not there, a node left out
/// or listed twice, a device that cannot run a node, chunks that wait for each other, another model.
std::vector<device_index> place_as_saved(graph& g, const hash128& structure, std::span<const device_info> devices,
                                         const saved_plan& saved, chunk_assignment& chunks);

/// Extends an assignment to a graph into which planning has inserted nodes; `inserted` and `placement` are by its
/// nodes. An inserted node that `saved` lists on another device, or not at all, goes beside the nodes of its device.
/// Throws `errc::invalid_plan` where no chunk that comes after it is on its device.
chunk_assignment include_inserted(const graph& g, const std::vector<bool>& inserted,
                                  std::span<const device_index> placement, std::span<const device_info> devices,
                                  const saved_plan& saved, const chunk_assignment& chunks);

} // namespace troupe

// Which nodes of a graph are cut for a team of devices, and along which axis.
//
// In the order of the nodes: a node follows the cut of its operands where it is mapped along it, or takes windows along
// it, or adds up over it; operands that do not fit are gathered, or sliced where they are whole. Where no operand is
// cut, a node that computes begins a cut. What only moves or converts elements for readers that want all of them
// follows the gather instead of preceding it. All other nodes are repeated on the devices that read them, or run on one
// device.
#pragma once

#include "plan/place/placement_problem.hpp"
#include "plan/split/cuts.hpp"

#include <algorithm>

namespace troupe {

/// How a part of a node reads an operand.
enum class operand_use : uint8_t {
  all,    // whole
  own,    // the part that its device has
  pieces, // what windows need, of the parts of several devices
  slice,  // part of what is whole
};

constexpr bool reads_whole(operand_use use) {
  return use == operand_use::all || use == operand_use::slice;
}

struct split_decision {
  std::vector<node_cut> nodes;
  std::vector<value_cut> values;
  /// Dims that a binding must not make negative: parts that are too short for the cut.
  std::vector<dim> nonnegative;
  /// Nodes that can only run once, with the reason: "Loop 'l' (control flow)".
  std::vector<std::string> once;
  double seconds = 0, cut_seconds = 0; // predicted, of all nodes and of those that are cut, on the team's first device

  bool has_cuts() const { return std::ranges::find(nodes, node_cut::kind::cut, &node_cut::is) != nodes.end(); }
  /// Returns how a part of a node that is cut as `how` says reads operand `i`.
  operand_use use_of(const node& call, const node_cut& how, size_t i) const;
};

/// Returns the padding that a call with windows states: begins, then ends; empty if there is none.
std::vector<int64_t> stated_pads(const node& call);
/// Returns that after dim `axis` of the images.
int64_t padding_after(const node& call, size_t axis);

/// In the place of a dim: nodes are cut as the file's annotations say (graph/annotations.hpp).
inline constexpr int along_annotations = -2;

/// Decides for a program that runs on the devices `home` by node if it is not cut. A cut begins at dim `along` of a
/// node's first result, or if that is −1 at the longest axis of a node that no constant operand has by itself. With
/// `along_annotations`, annotated nodes are cut along what is stated or not at all, and others only follow.
split_decision decide_split(placement_problem& problem, std::span<const device_index> home, const split_team& team,
                            int along);

} // namespace troupe

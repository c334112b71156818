// Plans for people and programs to read: what runs where and why, in which chunks, and what moves.
#pragma once

#include "plan/bind/bound_plan.hpp"

namespace troupe {

/// Returns the plan as text: devices with their memory, why nodes are where they are, transfers, then chunks with their
/// nodes by wave. With a bound segment also its shapes and bytes.
std::string to_text(const plan& p, const bound_plan* bound = nullptr);

/// Returns the same as a JSON object, which `parse_saved_plan` reads.
std::string to_json(const plan& p, const bound_plan* bound = nullptr);

/// Returns the plan as a Graphviz digraph: devices and chunks as clusters, every node once, what crosses devices as
/// dashed edges with their bytes.
std::string to_dot(const plan& p, const bound_plan* bound = nullptr);

/// Returns all about one node: operands, attributes, device and why, what other devices say, chunk and wave. Throws
/// `errc::invalid_argument`, with similar names, if no node of the plan has that name.
std::string describe_node(const plan& p, std::string_view name, const bound_plan* bound = nullptr);

} // namespace troupe

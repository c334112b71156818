// The graph that a plan is made of: only what its outputs need, in topological order, each node with a name of its own.
#pragma once

#include "graph/graph.hpp"

namespace troupe {

/// Returns such a copy of a rewritten graph. Throws `errc::invalid_model` if it has no outputs or is not valid,
/// `errc::unsupported` if the rank of a value that something reads is not known.
graph prepare(const graph& given);

/// Gives every node a printable name of its own: plans are saved and edited by name.
void name_nodes(graph& g);

} // namespace troupe

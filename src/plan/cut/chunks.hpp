// Chunks: nodes of one device grown greedily into units of execution, with what moves between devices around them.
//
// Growth follows the graph's order. A chunk ends after a node whose value another device needs, and a node that waits
// for another device starts a new one, unless its device has waited for that chunk already. So a chunk never waits in
// its middle, and every predecessor has a lower id. Model outputs do not end a chunk: the caller waits for all of them
// anyway.
//
// A caller that knows better says itself which nodes form a chunk (a saved plan): such a chunk waits for all that its
// nodes need.
#pragma once

#include "plan/cut/segments.hpp"

namespace troupe {

/// Cuts a placed, segmented, topologically sorted graph into chunks, ascending by segment. `given` holds every node's
/// chunk if the caller decides, else nothing: nodes of one device and one segment, chunk by chunk in the order of the
/// nodes.
std::vector<chunk> build_chunks(const graph& program, const adjacency& edges, std::span<const device_index> placement,
                                const segmentation& segments, std::span<const uint32_t> given = {});

} // namespace troupe

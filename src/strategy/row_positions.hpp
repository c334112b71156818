// Rows picked by their own numbers. Exporters of attention masks write mask[i, j] so: the mask is folded to [batch ·
// seq], and a Gather picks i · seq + j, where i comes from Range(0, batch) and j from Range(0, seq). Neither half keeps
// rows apart, the Gather does.
#pragma once

#include "strategy/row_call.hpp"

namespace troupe {

/// Returns what output 0 of a call is that makes, computes with or uses row numbers or folded rows as above; nullopt if
/// the call does anything else. `producer`: the node that makes each value, as `adjacency` has it. The graph is only
/// read.
std::optional<row_state> indexed_rows(const row_call& c, const graph& g, const std::vector<node_id>& producer);

} // namespace troupe

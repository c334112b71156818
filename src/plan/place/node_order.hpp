// The order of nodes that data leave open, for plans over several devices: what the longest way to the end of the model
// hangs on goes first, so that other devices wait as little as possible; of what is about equally urgent, what frees
// memory goes first.
//
// A device runs its chunks in the order of their nodes, so priorities are decided here, once for each plan, and cost
// nothing at run time. This is list scheduling by upward rank (Topcuoglu, Hariri, Wu: HEFT, IEEE TPDS 13(3), 2002),
// moves included.
//
// What only makes large answers for the caller is urgent for no node, but its copies take a link that has nothing to
// do. So it goes where its device ends a chunk and would wait for others, and its copies go beside the work after that.
#pragma once

#include "plan/plan.hpp"

namespace troupe {

/// Reorders the nodes of a topologically sorted graph, and `placement` with them; the order stays topological.
/// `expected` says what symbolic dims are likely to be. Leaves a graph alone that runs on one device. O(n log n).
void order_nodes(graph& g, std::vector<device_index>& placement, std::span<const device_info> devices,
                 const bindings& expected);

} // namespace troupe

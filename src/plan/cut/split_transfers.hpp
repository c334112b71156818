// Large values between GPUs move in pieces: while one goes up to the target, the next comes down from the source.
//
// A transfer between two GPUs has two legs with host memory between, and its target may only read what has arrived
// there whole. So a large value is cut by ordinary nodes: its source slices it, each slice ends a chunk, and each is
// uploaded by a chunk of the target, which joins them. The copies on the devices cost a few percent of what the
// overlapped legs save.
#pragma once

#include "plan/plan.hpp"

namespace troupe {

/// A piece has at least this many bytes: below, a submission and its completion cost more than the overlap saves. The
/// first two have a quarter and half as many, so that the target begins sooner.
inline constexpr int64_t transfer_piece_bytes = int64_t{16} << 20;

/// Cuts every value of two pieces or more that a GPU makes and another GPU reads, if its size is known; `placement` is
/// by node and grows with the graph. `g` must be sorted topologically, resolved and inferred; it stays so.
void split_transfers(graph& g, std::vector<device_index>& placement, std::span<const device_info> devices);

} // namespace troupe

// What moves, from where to where, and how: read off the chunks of a plan when these are cut.
#pragma once

#include "plan/plan.hpp"

namespace troupe {

/// Returns the transfers (see `plan::transfers`) that the chunks of a plan need.
std::vector<transfer> find_transfers(const plan& p);

/// Returns the route of a value from the chunk that makes it to the one that reads it; nullopt: the caller.
transfer_route route_of(const plan& p, const std::optional<chunk_id>& from, const std::optional<chunk_id>& to);

/// Returns whether the second chunk, on another device, can be sent when the first one has begun: its device waits for
/// what it reads. Values of an earlier segment are there in any case.
bool is_peer_edge(const plan& p, chunk_id from, chunk_id to);

} // namespace troupe

// Which numbers of rows the replicas of a stream get of its first requests, so that they can be prepared. Pure.
#pragma once

#include "strategy/stream.hpp"

#include <set>

namespace troupe {

/// Returns, by replica, the rows of the pieces that it gets of the first requests like this one if all are as fast as
/// predicted: a machine with these options is fed in virtual time. Its strategy is not a plug-in.
std::vector<std::set<int64_t>> first_sizes(const machine_options& options, const stream_request& request);

} // namespace troupe

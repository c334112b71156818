// The content hash of what a plan depends on: the key of the cache of plans.
#pragma once

#include "ops/graph_hash.hpp"
#include "plan/plan.hpp"

namespace troupe {

/// Returns the key of the plan of a graph with hash `program` on `devices`. Bytes of memory count by their four highest
/// bits.
hash128 plan_key(const hash128& program, std::span<const device_info> devices, const plan_options& options);

} // namespace troupe

// Content hashes of what plans depend on: the keys of the plan caches.
#pragma once

#include "ops/graph_hash.hpp"
#include "plan/plan.hpp"

namespace troupe {

/// Returns the key of the plan of a graph with hash `program` on `devices`. Bytes of memory count by their four highest bits.
hash128 plan_key(const hash128& program, std::span<const device_info> devices, const plan_options& options);

/// Returns the key of a plan's segment bound to `values`.
hash128 bound_key(const hash128& plan, uint32_t segment, const bindings& values);

} // namespace troupe

// Content hashes of graphs and of what plans depend on: the keys of the plan caches.
#pragma once

#include "plan/plan.hpp"

namespace troupe {

/// Hashes what a plan of `g` depends on: operators, attributes, bodies, types, dims, host-known elements, layouts, weights
/// by their keys, interface names, requested outputs. Costs a pass over the graph: keep the result beside it.
hash128 hash_of(const graph& g);

/// Hashes the same, except what the weights' elements are; for saved plans, which a change of them leaves valid. Nodes' names
/// count too.
hash128 structure_of(const graph& g);

/// Returns the key of the plan of a graph with hash `program` on `devices`. Bytes of memory count by their four highest bits.
hash128 plan_key(const hash128& program, std::span<const device_info> devices, const plan_options& options);

/// Returns the key of a plan's segment bound to `values`.
hash128 bound_key(const hash128& plan, uint32_t segment, const bindings& values);

} // namespace troupe

// What concrete dims decide and symbols leave open.
#pragma once

#include "graph/graph.hpp"

namespace troupe {

/// Returns whether a rewritten graph has deferred calls (ops/composed/deferred.hpp) that would be none if its inputs'
/// dims were numbers: what decides their shapes is computed from dims alone, as `ceil(n / 16)` in floats.
bool has_calls_settled_by_dims(const graph& g);

} // namespace troupe

// Concrete shapes of a segment from its dim programs: what a layout and a binding have in common.
#pragma once

#include "plan/plan.hpp"

namespace troupe {

/// Results of the dim programs of one binding, by segment.
using slot_values = std::vector<std::vector<int64_t>>;

/// Evaluates the dim programs of `segment` and earlier ones. Throws `errc::invalid_input` if a symbol has no value, or
/// the values do not fit.
slot_values evaluate_dims(const plan& p, uint32_t segment, const bindings& values);

/// Writes the dims of `v`, whose segment has been evaluated, and returns its bytes. Throws `errc::invalid_input` if a
/// dim is negative or the value too large.
int64_t bind_shape(const plan& p, value_id v, const slot_values& slots, shape& dims);

/// Returns whether binding `segment` gives `v` dims.
inline bool has_dims(const plan& p, uint32_t segment, value_id v) {
  return p.segment_of_value[v] <= segment && p.program->values[v].dims;
}

/// Throws `errc::invalid_input` if view `v` has another volume than its source: it shares its root's bytes, so that no
/// kernel would notice a Reshape to another volume, and with symbolic dims only binding can tell.
void check_view(const plan& p, uint32_t segment, value_id v, std::span<const shape> dims);

} // namespace troupe

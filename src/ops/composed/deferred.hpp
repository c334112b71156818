// Calls whose outputs' shapes only their run tells, though their operator decides shapes from what the host knows:
// Slice from a start that is computed, Resize by scales that are computed, a rule that needs a number where a dim
// depends on data.
//
// Such a call becomes `troupe.Deferred` with the operator's own attributes and operands. It is like any node whose
// output shape depends on data: it ends a segment, the CPU runs it by the operator's reference kernel once its operands
// are there, and the dims that come back are bound (graph/data_symbols.hpp). No pass takes it for the operator that it
// replaces.
#pragma once

#include "ops/op.hpp"

namespace troupe {

/// Returns the deferred form of `n`, a resolved node of `g` that inference cannot follow, its outputs inferred: their
/// types, ranks, and the dims that do not depend on what is unknown. Returns nullopt if not even the ranks can be told,
/// if the call has no deferred form, or if the dims of the graph's inputs in numbers would be enough to infer it.
std::optional<node> defer(graph& g, const node& n);

bool is_deferred(const node& n);

/// Returns the operator of the call that was deferred; throws `errc::invalid_model` if it names none that can be
/// deferred.
const op_def& deferred_operator(const attributes& attrs);

} // namespace troupe

// What the compositions of attention share (contrib_attention.cpp, group_query_attention.cpp).
#pragma once

#include "ops/expansion.hpp"

namespace troupe {

/// Returns [batch, sequence, heads · size] as [batch, heads, sequence, size]; an operand of rank 4 as it is.
value_id split_heads(expansion& e, value_id v, int64_t heads);

/// Returns [batch, heads, sequence, size] as [batch, sequence, heads · size].
value_id join_heads(expansion& e, value_id v);

/// Hands on attribute `scale`, where 0 means the usual one.
void set_scale(const expansion& e, attributes& attrs);

} // namespace troupe

// FlexAttention in three parts, between which the rewrite puts what a model changes (rewrite/modified_attention.cpp).
#pragma once

#include "ops/expansion.hpp"

namespace troupe {

/// Q · Kᵀ · scale, [batch, heads, queries, keys] of the type that scores have.
value_id flex_scores(expansion& e);

/// The softmax of scores along the keys.
value_id flex_weights(expansion& e, value_id scores);

/// Weights · V, of the operands' type: the call's output.
void set_flex_result(expansion& e, value_id weights);

} // namespace troupe

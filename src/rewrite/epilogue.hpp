// The end of a product (convolution, matrix product): bias, residual, activation, found after it one by one.
#pragma once

#include "ops/activation.hpp"
#include "rewrite/editor.hpp"

namespace troupe {

/// Returns the activation that node `n` is, applied to `x`; nullopt if it is something else.
std::optional<activation> activation_of(const graph_editor& e, node_id n, value_id x);

/// Returns the value that the Add `n` adds to `x` if it has the dims and type of both `x` and the sum; else no_value.
value_id residual_of(const graph_editor& e, node_id n, value_id x);

/// Returns "+relu" for Relu: what a fused node's name gets.
std::string suffix_of(const activation& act);

} // namespace troupe

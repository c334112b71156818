// What fused convolutions and matrix products do after the product: + residual, then the activation.
#pragma once

#include "ops/activation.hpp"
#include "ops/op.hpp"

namespace troupe {

/// Checks that input `i` has the dims of output 0, which must have been inferred.
void check_residual_dims(const infer_context& c, size_t i);

/// Checks that it has the type of input 0, too.
void check_residual(const infer_context& c, size_t i);

/// y = act(y + residual), element by element; `residual` may be absent (undefined type).
void apply_epilogue(const mutable_view& y, const const_view& residual, const activation& act);

} // namespace troupe

// The calls that troupe.AttentionProjection (fused_attention.cpp) takes the place of.
#pragma once

#include "ops/call_parts.hpp"

namespace troupe {

class call_axes;

namespace attention_projection {
/// Inputs of the operator, after those of troupe.Attention.
inline constexpr size_t weights = 6, bias = 7, residual = 8;
/// The name of the part that multiplies, at the end of its attributes.
inline constexpr const char* product = "product";
} // namespace attention_projection

/// See `op_def::axes`.
void fused_attention_axes(call_axes& a);
void attention_projection_axes(call_axes& a);

/// See `parts_function`.
call_parts parts_of_attention_projection(const attributes& attrs, std::span<const operand> inputs,
                                         std::span<const operand> outputs);

} // namespace troupe

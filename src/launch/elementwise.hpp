// GPU launches of elementwise operators: floats as chains of steps for shaders/elementwise.comp, integers by shaders/integer.comp,
// doubles by shaders/doubles.comp.
#pragma once

#include "launch/launch_table.hpp"
#include "ops/fused_elementwise.hpp"

namespace troupe {

/// Returns the launch of a chain over all inputs of `call` that are present, counted without the others, which broadcast to
/// output 0; empty for other than float32 and float16, and for more than 8 inputs.
launch_lists launch_chain(const gpu_call& call, const elementwise_program& program);

/// Launches of one function over all inputs that are present (at most three); empty if they are no integers of the
/// output's type.
launch_lists launch_integers(const gpu_call& call, scalar_code code);

/// Launches of one function of doubles over all inputs that are present and, behind them, numbers; empty if they are no doubles, or if
/// shaders/doubles.comp lacks the function.
launch_lists launch_doubles(const gpu_call& call, scalar_code code, const std::vector<float>& numbers = {});

/// The rules of all operators that are scalar functions.
std::vector<implementation<launch_rule>> scalar_rules();

} // namespace troupe

// GPU launches of elementwise operators: floats as chains of steps for shaders/elementwise.comp, integers by
// shaders/integer.comp, doubles by shaders/doubles.comp.
#pragma once

#include "launch/launch_table.hpp"
#include "ops/composed/fused_elementwise.hpp"

namespace troupe {

/// Returns the launch of a chain over all inputs of `call` that are present, counted without the others, which
/// broadcast to output 0; empty for other than float32 and float16, and for more than 8 inputs.
launch_lists launch_chain(const gpu_call& call, const elementwise_program& program);

/// Elements that each invocation of `count` computes, one after the other: few groups if the device is full anyway, but
/// the shortest time from first to last where it is not.
uint32_t elements_each(int64_t count, const gpu_features& gpu);

/// Returns which variant of a shader that runs chains holds these steps ("_single", "_1", "_4", "_16"); null for
/// several of which one stands alone, and for more steps or numbers than any has.
const char* chain_variant(const elementwise_program& program);

/// Returns how many operands a shader of these steps binds: three, or eight if there are several.
size_t chain_operands(const elementwise_program& program);

/// Returns the constants from the second on (shaders/elementwise_program.glsl) of a chain over `inputs` operands.
std::vector<uint32_t> chain_constants(const elementwise_program& program, size_t inputs, uint32_t each);

/// Launches of one function over all inputs that are present (at most three); empty if they are not integers of
/// the output's type.
launch_lists launch_integers(const gpu_call& call, scalar_code code);

/// Launches of one function of doubles over all inputs that are present and, after them, numbers; empty if they are not
/// doubles, or if shaders/doubles.comp lacks the function.
launch_lists launch_doubles(const gpu_call& call, scalar_code code, const std::vector<float>& numbers = {});

/// The rules of all operators that are scalar functions.
std::vector<implementation<launch_rule>> scalar_rules();

} // namespace troupe

// GPU launches of kernels whose operands broadcast together to output 0 (shaders/broadcast.glsl).
#pragma once

#include "launch/launch.hpp"
#include "ops/operand_walk.hpp"

namespace troupe {

/// Returns the launch of `shader` over the inputs of `call` that are present, at most `operands` of them; a shader
/// binds that many, the first one in place of those that are absent. `constants` are ids 1, 2 …; `numbers`, at most 16,
/// end the parameters; an invocation computes `elements_each` elements. Empty if a limit of the device is passed;
/// throws `errc::invalid_input` if an input does not broadcast.
launch_lists launch_broadcast(const gpu_call& call, const std::string& shader, size_t operands,
                              const std::vector<uint32_t>& constants, const std::vector<float>& numbers = {},
                              int64_t elements_each = 4);

/// Returns the parameters of a walk for a shader that binds `operands`; `walk` has at most `max_walk_rank` dims and as
/// many operands.
std::vector<uint32_t> broadcast_parameters(const operand_walk& walk, size_t operands, int64_t count,
                                           const std::vector<float>& numbers);

/// Returns the constant that says how a shader walks each operand.
uint32_t walk_modes(const operand_walk& walk);

/// Returns how many inputs are present.
size_t present_inputs(const gpu_call& call);

} // namespace troupe

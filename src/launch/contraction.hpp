// GPU launches of sums of products over any axes (shaders/contraction.comp).
#pragma once

#include "launch/launch.hpp"

namespace troupe {

/// Returns the launch of an Einsum equation over all inputs of a call, one or two of the output's type; empty for
/// others.
launch_lists contraction_launches(const gpu_call& call, const std::string& equation);

} // namespace troupe

// Why a plan uses no device of a host that is there.
#pragma once

#include "cli/command.hpp"

namespace troupe::cli {

/// Returns a line for each other host of which `bound`, the plan of `inputs`, uses no device, if the policy decides by
/// predicted times: what the model would take there and how much of that is the network's, beside what the plan takes.
/// None where the caller has chosen devices himself (`--pin`, `--load`).
std::vector<std::string> why_unused(engine& devices, const model_options& args, const named_tensors& inputs,
                                    const bound_plan& bound);

} // namespace troupe::cli

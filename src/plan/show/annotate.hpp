// A plan as annotations for its model's file.
#pragma once

#include "graph/annotations.hpp"
#include "plan/plan.hpp"

namespace troupe {

/// Returns what runs where as a configuration called "troupe" of all the plan's devices: the device of each node, the
/// stage too if the policy is `pipeline`, and along which dim tensors are in parts if the plan is split. Shares are not
/// stated: they follow from the devices' speeds. What planning inserts and bodies of control flow are left out.
device_configuration annotations_of(const plan& p);

} // namespace troupe

// Plans for models that are larger than a device's memory: what does not fit spills to the other devices.
#pragma once

#include "plan/bound_plan.hpp"

namespace troupe {

/// Plans `program` again by `greedy_memory` so that its first segment, bound to `symbols`, fits every device; `first` is how
/// the plan of `options` failed. What binding needs is known only afterwards, so a device that is still short gets a smaller
/// budget and placement is done again, a few times. The plan's remarks say what went where. Throws `errc::out_of_memory` with
/// the figures of every device where the model fits them not even together.
std::shared_ptr<const plan> plan_that_fits(const std::shared_ptr<const graph>& program,
                                           const std::vector<device_info>& devices, plan_options options,
                                           const bindings& symbols, const memory_shortage& first);

} // namespace troupe

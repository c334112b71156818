// Plans for models that are larger than a device's memory: what does not fit spills to the other devices.
#pragma once

#include "plan/bind/bound_plan.hpp"

namespace troupe {

/// Plans what `failed` is a plan of again, by `greedy_memory`, so that every segment whose dims `symbols` state fits
/// every device beside the bytes that are `taken` there (by device; empty for none); `first` is how `failed` did not.
/// What binding needs is known only afterwards, so a device that is still short gets a smaller budget and placement is
/// done again, a few times. The plan's remarks say what went where. Bodies of control flow are planned as usual: they
/// spill when they are bound. Throws `errc::out_of_memory` with the figures of every device if the model fits them not
/// even together, and `first` if `failed` is a saved plan: nothing may go elsewhere than it says.
std::shared_ptr<const plan> plan_that_fits(const plan& failed, const bindings& symbols, std::span<const int64_t> taken,
                                           const memory_shortage& first);

} // namespace troupe

// From a prepared graph to a plan, step by step: place, insert, cut chunks, derive the rest.
#pragma once

#include "plan/plan.hpp"
#include "plan/split/split.hpp"

namespace troupe {

/// Plans a graph that `prepare` has made, its bodies aside; `cut`: what it has been cut into, and placed, if it has.
/// Throws what `make_plan` throws.
std::shared_ptr<plan> compile(const graph& prepared, const std::vector<device_info>& devices,
                              const plan_options& options, const split_program* cut = nullptr);

} // namespace troupe

// What moves, from where to where, and how: read off the chunks of a plan when these are cut.
#pragma once

#include "plan/plan.hpp"

namespace troupe {

/// Returns the transfers (see `plan::transfers`) that the chunks of a plan need.
std::vector<transfer> find_transfers(const plan& p);

} // namespace troupe

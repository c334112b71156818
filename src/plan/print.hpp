// Plans for people and programs to read: what runs where, in which chunks, and what moves.
#pragma once

#include "plan/bound_plan.hpp"

namespace troupe {

/// Returns the plan as text: devices, then chunks with their nodes, uploads, downloads and predecessors. With a bound
/// segment also its shapes' memory by device.
std::string to_text(const plan& p, const bound_plan* bound = nullptr);

/// Returns the same as a JSON object.
std::string to_json(const plan& p, const bound_plan* bound = nullptr);

} // namespace troupe

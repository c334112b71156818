// The devices that run one request together.
#pragma once

#include "plan/split/cuts.hpp"

namespace troupe {

/// Returns the devices of a plan that would run one request together, with shares by their predicted speeds: all but
/// fallback devices and those that are far slower. Fewer than two: there is nothing to split for.
split_team team_for(const graph& program, std::span<const device_info> devices, const plan_options& options);

/// Returns the team of a saved plan; `source` is what errors call it. Throws `errc::invalid_plan` if a device is not
/// there or the shares do not ascend.
split_team saved_team(const plan_split& how, std::span<const device_info> devices, const std::string& source);

} // namespace troupe

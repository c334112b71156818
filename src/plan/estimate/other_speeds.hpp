// What a plan takes on devices whose speeds are not those that it was made for.
#pragma once

#include "plan/estimate/predict.hpp"

namespace troupe {

/// Returns the plan with other speeds of its devices: `profiles` by real device. It stays the same in all else, its key
/// included.
plan with_profiles(plan p, std::span<const device_profile> profiles);

/// Returns the seconds from one answer to the next if `in_flight` runs (at least 1, on average) are in flight: no less
/// than what the processor that has the most to do takes for a run, nor a run's share of its own time.
double seconds_a_run(const prediction& one, std::span<const device_info> devices, double in_flight);

/// Returns the seconds in which devices get the weights that they need for `to` and do not have for `from`, a plan of
/// the same model for the same devices.
double weight_seconds(const plan& from, const plan& to);

} // namespace troupe

// What is known of a device's speed: what it says itself, and what was measured of devices like it.
#pragma once

#include "cost/profile_file.hpp"
#include "plan/device_info.hpp"

namespace troupe {

/// Returns the device's profile with what `kept` says of devices of its key. A device of another host says itself how
/// fast it is; only what nodes took on a device like it here is true of it, too. Throws as `refine` does.
device_profile known_profile(const device_info& device, std::span<const measured_profile> kept);

} // namespace troupe

// Profiles of devices that turn out to be slower, or faster, than stated.
#pragma once

#include "cost/device_profile.hpp"

namespace troupe {

/// Returns the profile of a device on which all that it computes and copies takes `pace` (above 0) times as long as on
/// one of `profile`. What the host and the network take is as before.
device_profile paced(device_profile profile, double pace);

} // namespace troupe

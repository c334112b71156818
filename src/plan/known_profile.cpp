#include "plan/known_profile.hpp"

namespace troupe {

device_profile known_profile(const device_info& device, std::span<const measured_profile> kept) {
  device_profile known = device.profile;
  for (const measured_profile& m : kept)
    if (m.device == key_of(device)) {
      const device_profile refined = refine(known, m);
      // Another host states what it has measured of its own device. Times of nodes hold for like devices of any host.
      if (is_remote(device))
        known.measured = refined.measured;
      else
        known = refined;
    }
  return known;
}

} // namespace troupe

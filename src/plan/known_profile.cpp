#include "plan/known_profile.hpp"

namespace troupe {

device_profile known_profile(const device_info& device, std::span<const measured_profile> kept) {
  device_profile known = device.profile;
  for (const measured_profile& m : kept)
    if (m.device == key_of(device)) {
      const device_profile refined = refine(known, m);
      if (is_remote(device))
        known.measured = refined.measured;
      else
        known = refined;
    }
  return known;
}

} // namespace troupe

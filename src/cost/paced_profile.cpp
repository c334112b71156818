#include "cost/paced_profile.hpp"

#include "cost/node_times.hpp"

namespace troupe {

device_profile paced(device_profile profile, double pace) {
  if (pace == 1)
    return profile;
  for (double& speed : profile.flops_per_s)
    speed /= pace;
  profile.memory_bytes_per_s /= pace;
  profile.launch_s *= pace;
  profile.barrier_s *= pace;
  for (link_speed* link : {&profile.up, &profile.down}) {
    link->bytes_per_s /= pace;
    link->latency_s *= pace;
  }
  if (profile.measured)
    profile.measured = std::make_shared<const node_times>(profile.measured->scaled(pace));
  return profile;
}

} // namespace troupe

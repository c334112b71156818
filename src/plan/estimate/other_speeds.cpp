#include "plan/estimate/other_speeds.hpp"

#include "cost/cost_model.hpp"

namespace troupe {

plan with_profiles(plan p, std::span<const device_profile> profiles) {
  for (size_t d = 0; d < profiles.size(); ++d)
    p.devices[d].profile = profiles[d];
  return p;
}

double seconds_a_run(const prediction& one, std::span<const device_info> devices, double in_flight) {
  const std::vector<size_t> processors = first_of_processors(devices);
  std::vector<double> busy(devices.size(), 0);
  for (size_t d = 0; d < devices.size(); ++d)
    busy[processors[d]] += one.busy_s[d];
  return std::max(*std::ranges::max_element(busy), one.makespan_s / in_flight);
}

double weight_seconds(const plan& from, const plan& to) {
  double seconds = 0;
  for (size_t d = 0; d < to.weight_bytes.size(); ++d)
    if (const int64_t more = to.weight_bytes[d] - (d < from.weight_bytes.size() ? from.weight_bytes[d] : 0); more > 0)
      seconds += link_seconds(static_cast<double>(more), to.devices[d].profile.up) +
                 network_seconds(static_cast<double>(more), nullptr, &to.devices[d]);
  return seconds;
}

} // namespace troupe

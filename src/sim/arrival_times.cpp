#include "sim/arrival_times.hpp"

#include "base/seeded_random.hpp"

#include <cmath>

namespace troupe::sim {

std::vector<double> arrival_times(const arrivals& how, size_t requests, uint64_t seed) {
  if (how.how == arrivals::process::listed)
    return how.times_s;
  seeded_random random(seed);
  std::vector<double> times(requests, 0);
  for (size_t i = 1; i < requests; ++i)
    times[i] = times[i - 1] - std::log(random.open_unit()) / how.per_second;
  return times;
}

} // namespace troupe::sim

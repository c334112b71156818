#include "troupe/results.hpp"

namespace troupe {

double run_stats::parallel_efficiency() const {
  double busy = 0;
  size_t used = 0;
  for (const auto& [device, ms] : busy_ms)
    if (ms > 0) {
      busy += ms;
      ++used;
    }
  return used > 0 && total_ms > 0 ? busy / (static_cast<double>(used) * total_ms) : 0;
}

} // namespace troupe

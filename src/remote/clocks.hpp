// Times that another host took, on this process's clock.
#pragma once

#include "device/device.hpp"

#include <algorithm>

namespace troupe::remote {

/// Moves the times of a chunk's work to this process's clock, which the host's is `ahead_ns` ahead of by what was measured once. Clocks
/// drift apart and the measurement errs by up to half a round trip, but the work was done after the chunk was sent and before its
/// answer had come: what is outside is moved in as a whole, by as little as that takes. Times of a hostile host may be anything.
inline void align_clocks(std::vector<device_timing>& timings, int64_t ahead_ns, int64_t sent_ns, int64_t answered_ns) {
  if (timings.empty())
    return;
  const auto minus = [](int64_t a, int64_t b) { // wraps around
    return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  };
  int64_t begin = INT64_MAX, end = INT64_MIN;
  for (const device_timing& t : timings) {
    begin = std::min(begin, t.begin_ns);
    end = std::max(end, t.end_ns);
  }
  // If the work seems longer than the time between, its begin is right.
  const int64_t ahead = std::min(std::max(ahead_ns, minus(end, answered_ns)), minus(begin, sent_ns));
  for (device_timing& t : timings) {
    t.begin_ns = minus(t.begin_ns, ahead);
    t.end_ns = minus(t.end_ns, ahead);
  }
}

} // namespace troupe::remote

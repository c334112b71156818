// When a device counts as silent. Pure: the time is given.
#pragma once

#include "actors/device_actor.hpp"

#include <chrono>

namespace troupe::actors {

/// Returns how often to look at devices that count as lost when they are silent for `limit`.
std::chrono::nanoseconds look_interval(std::chrono::milliseconds limit);

/// Watches one device, which is silent if it has work and shows no progress.
class silence_watch {
public:
  using clock = std::chrono::steady_clock;

  /// Looks at the device; returns whether it has been silent for `limit`, as far as earlier looks say. Never if the
  /// limit is zero, nor if the device cannot hang.
  bool is_silent(const device_health& health, bool has_work, clock::time_point now, std::chrono::milliseconds limit);

private:
  uint64_t progress_ = 0; // at the last look
  bool had_work_ = false; // then
  clock::time_point since_;
};

} // namespace troupe::actors

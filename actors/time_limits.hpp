// Time limits: what a caller's number means, and when a device counts as silent. Pure: the time is given.
#pragma once

#include "actors/device_actor.hpp"

#include <optional>

namespace troupe::actors {

/// Returns a caller's time limit; nullopt where there is none: zero, and more than a hundred years, such as milliseconds::max(),
/// with which clocks would overflow. Throws `errc::invalid_argument` where it is negative, naming it by `name`.
std::optional<std::chrono::milliseconds> time_limit(std::chrono::milliseconds given, std::string_view name);

/// Returns how often to look at devices that count as lost when they are silent for `limit`.
std::chrono::nanoseconds look_interval(std::chrono::milliseconds limit);

/// Watches one device, which is silent where it has work and shows no progress.
class silence_watch {
public:
  using clock = std::chrono::steady_clock;

  /// Looks at the device; returns whether it has been silent for `limit`, as far as earlier looks say. Never where the limit is zero,
  /// nor where the device cannot hang.
  bool is_silent(const device_health& health, bool has_work, clock::time_point now, std::chrono::milliseconds limit);

private:
  uint64_t progress_ = 0; // at the last look
  bool had_work_ = false; // then
  clock::time_point since_;
};

} // namespace troupe::actors

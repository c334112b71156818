#include "actors/time_limits.hpp"

#include <algorithm>

namespace troupe::actors {

std::optional<std::chrono::milliseconds> time_limit(std::chrono::milliseconds given, std::string_view name) {
  constexpr std::chrono::milliseconds longest = std::chrono::hours(24 * 365 * 100);
  if (given.count() < 0)
    fail(errc::invalid_argument, "{} is {} ms: it must not be negative; zero means no limit", name, given.count());
  if (given.count() == 0 || given > longest)
    return std::nullopt;
  return given;
}

std::chrono::nanoseconds look_interval(std::chrono::milliseconds limit) {
  using namespace std::chrono_literals;
  if (limit.count() == 0)
    return 1s;
  return std::clamp<std::chrono::nanoseconds>(limit / 4, 1ms, 1s);
}

bool silence_watch::is_silent(const device_health& health, bool has_work, clock::time_point now,
                              std::chrono::milliseconds limit) {
  const uint64_t progress = health.progress;
  if (!had_work_ || progress != progress_)
    since_ = now;
  had_work_ = has_work;
  progress_ = progress;
  return has_work && health.may_hang && limit.count() > 0 && now - since_ >= limit;
}

} // namespace troupe::actors

#include "actors/silence_watch.hpp"

#include <algorithm>

namespace troupe::actors {

std::chrono::nanoseconds look_interval(std::chrono::milliseconds limit) {
  using namespace std::chrono_literals;
  if (limit.count() == 0)
    return 1s;
  return std::clamp<std::chrono::nanoseconds>(limit / 4, 1ms, 1s);
}

bool silence_watch::is_silent(const device_health& health, bool has_work, clock::time_point now,
                              std::chrono::milliseconds limit) {
  const uint64_t progress = health.progress;
  // An idle device answers nothing, so silence begins when it gets work.
  if (!had_work_ || progress != progress_)
    since_ = now;
  had_work_ = has_work;
  progress_ = progress;
  return has_work && health.may_hang && limit.count() > 0 && now - since_ >= limit;
}

} // namespace troupe::actors

// How long something took, by the steady clock.
#pragma once

#include <chrono>

namespace troupe {

inline double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

} // namespace troupe

// The words of a progress line.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace troupe::cli {

/// Returns e.g. "34 s" or "11 min 05 s".
inline std::string time_text(double s) {
  if (s < 60)
    return fmt::format("{:.0f} s", s);
  return fmt::format("{:.0f} min {:02.0f} s", std::floor(s / 60), std::floor(std::fmod(s, 60)));
}

/// Returns e.g. "bench  12 of 20 runs, 3 s left", or "loading … 3 s" if `all` is 0.
inline std::string progress_text(const std::string& what, double done, double all, const std::string& unit,
                                 double elapsed_s) {
  if (all <= 0)
    return fmt::format("{} … {}", what, time_text(elapsed_s));
  std::string text = fmt::format("{}  {:.0f} of {:.0f} {}", what, done, all, unit);
  if (done > 0 && all > done)
    text += fmt::format(", {} left", time_text(elapsed_s * (all - done) / done));
  return text;
}

} // namespace troupe::cli

// The words of a progress line.
#pragma once

#include "troupe/device.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

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

/// Returns how far the weights have come that are on their way to other hosts, e.g. "weights to far  120 of 400 MB, 3 s
/// left"; empty if none are. `elapsed_s`: since they began to come.
inline std::string load_text(const std::vector<host_summary>& hosts, double elapsed_s) {
  int64_t came = 0, total = 0;
  std::string names;
  for (const host_summary& h : hosts)
    if (h.load_bytes > 0) {
      came += h.loaded_bytes;
      total += h.load_bytes;
      names += (names.empty() ? "" : ", ") + h.name;
    }
  if (total == 0)
    return "";
  return progress_text("weights to " + names, static_cast<double>(came) * 1e-6, static_cast<double>(total) * 1e-6, "MB",
                       elapsed_s);
}

} // namespace troupe::cli

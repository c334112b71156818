// Rates and trends from a window of samples. The time is the samples' own.
#pragma once

#include "troupe/monitor.hpp"

#include <algorithm>

namespace troupe::monitoring {

/// A slope needs this many stretches between samples, and this many seconds in all of them.
inline constexpr size_t least_stretches = 4;
inline constexpr double least_window_s = 10;

/// What happened between two samples.
struct stretch {
  double middle_s = 0, seconds = 0;
  double requests = 0, runs = 0, rows = 0;
  std::map<std::string, double> busy_s; // by device

  /// Returns the part of the time that a device was busy: at most 1, although chunks count where they end.
  double utilisation(const std::string& device) const;
  /// Returns the mean of that over the devices that were busy at all.
  double efficiency() const;
};

/// Returns how much a counter rose; one that fell has begun again at 0. Never below 0, whatever another host says.
template <class T>
double rise(T before, T after) {
  return std::max(static_cast<double>(after >= before ? after - before : after), 0.0);
}

/// Gives devices that have not said anything, in time or because they are lost, the counters that they had before.
void keep_silent(monitor_sample& now, const monitor_sample& before);

/// Returns what happened from each sample to the next; samples that are not later than the one before say nothing.
std::vector<stretch> stretches_of(std::span<const monitor_sample> samples);

/// Returns all stretches as one.
stretch sum_of(std::span<const stretch> parts);

/// Returns the trends of what the stretches have; nothing if there are too few or they are too short together.
std::vector<trend> trends_of(std::span<const stretch> parts);

} // namespace troupe::monitoring

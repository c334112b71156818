// Profiles: traces of runs, one after the other, in the format that chrome://tracing opens.
#pragma once

#include "troupe/results.hpp"

#include <chrono>
#include <mutex>
#include <string>
#include <vector>

namespace troupe::ort {

/// The traces of a session's runs, or of one run. Thread-safe.
class profile {
public:
  explicit profile(std::string prefix);

  /// Adds the trace of a run that began at `begin`.
  void add(const run_trace& trace, std::chrono::steady_clock::time_point begin);

  /// Writes all events to a file whose name begins with the prefix, forgets them, and returns its name. Throws
  /// `errc::io`.
  std::string write();

private:
  const std::string prefix_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::vector<std::string> events_; // JSON objects, the times of each counted from `begin_`
};

} // namespace troupe::ort

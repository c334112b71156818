// How one run is done, as the client says.
#pragma once

#include "compat/onnxruntime/api.hpp"

#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

/// Threads may set `stop` while runs with these options are under way; `mutex` guards it.
struct OrtRunOptions {
  int log_level = 2;
  int log_verbosity = 0;
  std::string tag;
  std::map<std::string, std::string> entries;
  std::optional<std::string> profile_prefix;
  mutable std::mutex mutex;
  std::stop_source stop = {};

  /// Returns what ends runs with these options.
  std::stop_token token() const {
    const std::lock_guard lock(mutex);
    return stop.get_token();
  }
};

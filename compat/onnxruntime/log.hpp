// Messages for the client: into its logger where it has one, else to stderr.
#pragma once

#include "compat/onnxruntime/api.hpp"

#include <atomic>
#include <string>

namespace troupe::ort {

/// Where messages go. Immutable but for the level; environments, sessions and runs share it.
struct log_sink {
  OrtLoggingFunction function = nullptr; // null: stderr
  void* parameter = nullptr;
  std::string id;
  std::atomic<OrtLoggingLevel> level = ORT_LOGGING_LEVEL_WARNING; // messages below are dropped

  log_sink(OrtLoggingFunction f, void* p, std::string name, OrtLoggingLevel l)
      : function(f), parameter(p), id(std::move(name)), level(l) {}
  log_sink(const log_sink& other)
      : function(other.function), parameter(other.parameter), id(other.id), level(other.level.load()) {}
  log_sink& operator=(const log_sink&) = delete;

  /// Writes one message; what a client's logger throws ends here.
  void write(OrtLoggingLevel severity, const std::string& message) const noexcept;
};

/// Writes a message, once a process for each text, to the environment that was made last; to stderr from the level
/// WARNING on if there is none.
void note(OrtLoggingLevel severity, const std::string& message) noexcept;

} // namespace troupe::ort

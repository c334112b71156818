// What a model file says beside the model: its version, and facts that troupe does not use.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

struct file_facts {
  int64_t ir_version = 0;
  /// A line for each kind of statement that is read by others and ignored here, for people.
  std::vector<std::string> ignored;
};

/// Reads a model file's facts; no weight is read. Throws `errc::io`, `errc::invalid_model`, `errc::unsupported`.
file_facts read_facts(const std::filesystem::path& file);

} // namespace troupe

// The hash of a file's content.
#pragma once

#include "base/hash.hpp"

#include <filesystem>
#include <optional>

namespace troupe {

struct hashed_file {
  uint64_t bytes = 0;
  hash128 hash; // as `hasher::add_bytes` has it of the whole content
};

/// Reads a file piece by piece; nullopt if it cannot be read to its end.
std::optional<hashed_file> hash_file(const std::filesystem::path& file);

} // namespace troupe

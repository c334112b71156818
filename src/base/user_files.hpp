// Files that troupe keeps for itself between runs.
#pragma once

#include <filesystem>
#include <span>

namespace troupe {

/// Returns the user's cache folder for troupe ($XDG_CACHE_HOME/troupe, else ~/.cache/troupe); empty if there is none.
/// It need not exist.
std::filesystem::path cache_folder();

/// Writes a file so that readers see the old content or the new one, whole; makes the folders above it. Returns whether
/// it succeeded.
bool replace_file(const std::filesystem::path& path, std::span<const std::byte> content);

} // namespace troupe

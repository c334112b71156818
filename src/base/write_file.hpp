// Files that are written whole.
#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <string_view>

namespace troupe {

/// Writes a file by `write`, so that readers see the old content or the new one, whole: nothing is left of what could
/// not be written to its end. What is not a regular file, a pipe or a device, is written as it is. Throws `errc::io`
/// that says why.
void write_file(const std::filesystem::path& file, const std::function<void(std::ostream&)>& write);
void write_file(const std::filesystem::path& file, std::string_view content);

} // namespace troupe

// Files that are written whole.
#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <string_view>

namespace troupe {

/// Writes a file by `write`, so that readers see the old content or the new one, whole: nothing is left of what could
/// not be written to its end. A pipe, a device, and a file that no other can take the place of are written as they are.
/// Throws `errc::io` that says why.
void write_file(const std::filesystem::path& file, const std::function<void(std::ostream&)>& write);
void write_file(const std::filesystem::path& file, std::string_view content);

} // namespace troupe

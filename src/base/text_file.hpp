// Files that are read whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace troupe {

/// Returns a file's content. `what` is what errors call it: "'FILE'". Throws `errc::io` if it cannot be read or has
/// more than `most` bytes.
std::string read_text(const std::filesystem::path& path, int64_t most, std::string_view what);

} // namespace troupe

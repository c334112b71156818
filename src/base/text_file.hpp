// Files that are read whole.
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace troupe {

/// Returns what a file, or a pipe, holds. `what` is what errors call it: "'FILE'". Throws `errc::io` if it cannot be
/// read, `too_large` if it has more than `most` bytes.
std::string read_text(const std::filesystem::path& path, int64_t most, std::string_view what,
                      errc too_large = errc::io);

} // namespace troupe

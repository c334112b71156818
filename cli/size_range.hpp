// The sizes of a dim as a command line states them.
#pragma once

#include <cstdint>
#include <string>

namespace troupe::cli {

/// The values that a dim is to have.
struct size_range {
  std::string name;
  int64_t first = 0, last = 0, step = 1;

  int64_t count() const { return (last - first) / step + 1; }
};

/// Returns what e.g. "batch=8" or "batch=1..64/2" says; throws `errc::invalid_argument`, naming `option`.
size_range parse_range(const std::string& text, const char* option);

} // namespace troupe::cli

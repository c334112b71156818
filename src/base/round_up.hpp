// Rounding sizes up to an alignment.
#pragma once

#include <cstdint>

namespace troupe {

/// Returns the smallest multiple of `multiple` that is at least `bytes`; both are positive and far below overflow.
constexpr int64_t round_up(int64_t bytes, int64_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

} // namespace troupe

// Division and rounding of sizes, upwards.
#pragma once

#include <cstdint>

namespace troupe {

/// Returns ⌈a / b⌉; both are positive and far below overflow.
constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

/// Returns the smallest multiple of `multiple` that is at least `bytes`; both are positive and far below overflow.
constexpr int64_t round_up(int64_t bytes, int64_t multiple) {
  return ceil_div(bytes, multiple) * multiple;
}

} // namespace troupe

// Division and rounding of sizes, upwards.
#pragma once

#include <bit>
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

/// Returns the smallest power of two that is at least `count`, which is positive and far below overflow.
constexpr int64_t next_power_of_two(int64_t count) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count)));
}

} // namespace troupe

// Overflow-checked integer arithmetic: sizes that come from a file are hostile.
#pragma once

#include "base/error.hpp"

#include <cstdint>

namespace troupe {

/// Returns a + b; throws `errc::invalid_model` if the sum does not fit.
inline int64_t checked_add(int64_t a, int64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum))
    fail(errc::invalid_model, "integer overflow: {} + {} does not fit 64 bits", a, b);
  return sum;
}

/// Returns a * b; throws `errc::invalid_model` if the product does not fit.
inline int64_t checked_mul(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product))
    fail(errc::invalid_model, "integer overflow: {} * {} does not fit 64 bits", a, b);
  return product;
}

} // namespace troupe

// Rows along one axis of an operand, for the operators that normalise or sort them.
#pragma once

#include <cstdint>

namespace troupe {

/// An operand seen as [outer, size, inner]: rows of `size` elements that are `inner` apart.
struct row_extent {
  int64_t outer = 1, size = 1, inner = 1;

  int64_t rows() const { return outer * inner; }
  /// Returns 4 where rows are whole vectors of four elements, else 1.
  uint32_t width() const { return inner == 1 && size % 4 == 0 ? 4 : 1; }
};

} // namespace troupe

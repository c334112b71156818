// How the reference kernels of reductions walk over an operand; see reduce.cpp.
#pragma once

#include "tensor/shape.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

/// A run of neighbouring axes that are all reduced or all kept.
struct axis_group {
  int64_t size, stride;
  bool reduced;
};

/// How a reduction walks. The innermost group is consecutive memory: one accumulator where it is reduced, a row of
/// accumulators where it is kept.
struct reduction_walk {
  axis_group inner{1, 1, true};
  std::vector<int64_t> kept, walked; // offsets along the other groups
  int64_t count = 1;                 // elements that enter a result

  reduction_walk(std::span<const int64_t> dims, const std::vector<bool>& reduced);

  int64_t row_size() const { return inner.reduced ? 1 : inner.size; }
  /// Rows that a thread should have before another one pays.
  int64_t grain() const;
};

} // namespace troupe

// Stacks of matrices whose batch dims broadcast.
#pragma once

#include "tensor/shape.hpp"

#include <vector>

namespace troupe {

/// Returns which matrix of an operand, whose batch dims are `own`, each matrix of a result with batch dims `batch` is
/// made of.
inline std::vector<int64_t> matrices_of(std::span<const int64_t> own, const shape& batch) {
  const shape strides = broadcast_strides(own, batch);
  std::vector<int64_t> index(static_cast<size_t>(volume(batch)), 0);
  for (size_t i = 0; i < index.size(); ++i) {
    auto rest = static_cast<int64_t>(i);
    for (size_t axis = batch.size(); axis-- > 0; rest /= batch[axis])
      index[i] += rest % batch[axis] * strides[axis];
  }
  return index;
}

} // namespace troupe

// Functions that make tensors for others to fill: plain ones, or ones in memory of a certain kind
// (device/host_block.hpp).
#pragma once

#include "troupe/tensor.hpp"

#include <functional>

namespace troupe {

/// Makes tensors, their bytes uninitialised.
using tensor_maker = std::function<tensor(dtype, shape)>;

inline tensor make_plain_tensor(dtype type, shape dims) {
  return {type, std::move(dims)};
}

} // namespace troupe

// Tensors cut along an axis, and put together again.
#pragma once

#include "tensor/elements.hpp"

#include <vector>

namespace troupe {

/// Returns the sizes of `parts` shares of `size`, as equal as they can be, larger ones first; a share may be 0.
std::vector<int64_t> equal_shares(int64_t size, size_t parts);

/// Cuts `whole` along `axis` into parts of these sizes, copying. Throws `errc::invalid_argument` if the axis does not
/// exist, the sizes do not add up to its dim, or elements are strings or smaller than a byte.
std::vector<tensor> cut(const tensor& whole, size_t axis, std::span<const int64_t> sizes);

/// Joins parts along `axis`, in order. Throws `errc::invalid_argument` if there are none, or their types or other dims
/// differ.
tensor join(std::span<const tensor> parts, size_t axis);

} // namespace troupe

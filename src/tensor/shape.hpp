// Arithmetic on concrete shapes: dims outermost first, row-major.
#pragma once

#include "troupe/tensor.hpp"

namespace troupe {

/// Returns row-major strides in elements.
shape strides_of(std::span<const int64_t> dims);

/// Returns the NumPy-broadcast shape of `a` and `b`; throws `errc::invalid_input` if they do not fit.
shape broadcast(std::span<const int64_t> a, std::span<const int64_t> b);

/// Returns strides, in elements, that walk a tensor of `dims` along the broadcast shape `out` (0 if repeated).
shape broadcast_strides(std::span<const int64_t> dims, std::span<const int64_t> out);

} // namespace troupe

// Concrete shapes: dims outermost first, row-major.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// Dims of a tensor, outermost first; empty for a scalar.
using shape = std::vector<int64_t>;

/// Returns the number of elements (1 for a scalar); throws `errc::invalid_model` on a negative dim or overflow.
int64_t volume(std::span<const int64_t> dims);

/// Returns row-major strides in elements.
shape strides_of(std::span<const int64_t> dims);

/// Returns the NumPy-broadcast shape of `a` and `b`; throws `errc::invalid_input` where they do not fit.
shape broadcast(std::span<const int64_t> a, std::span<const int64_t> b);

/// Returns strides, in elements, that walk a tensor of `dims` along the broadcast shape `out` (0 where repeated).
shape broadcast_strides(std::span<const int64_t> dims, std::span<const int64_t> out);

/// Returns e.g. "[1, 3, 224, 224]".
std::string to_string(std::span<const int64_t> dims);

} // namespace troupe

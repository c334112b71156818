// The geometry of transposed convolution, for its kernels.
#pragma once

#include "ops/window.hpp"

namespace troupe {

/// Returns the spatial axes of a ConvTranspose with operands of dims `x` and `w`, input and output exchanged: tap t of
/// input i, which `out` counts, lands on output i · stride − pad_begin + t · dilation, which `in` counts.
window_axes transpose_axes(const attributes& attrs, std::span<const int64_t> x, std::span<const int64_t> w);

} // namespace troupe

// What the kernels of pooling share.
#pragma once

#include "ops/window.hpp"

namespace troupe {

/// Returns the window of a pooling operator on an input of `rank`; throws `errc::invalid_model` if they do not fit.
window_spec parse_pool(const attributes& attrs, size_t rank);

/// Returns the window that is the whole plane of an input of these dims.
window_spec plane_window(const shape& x);

/// Returns attribute `p` of a p-norm: an integer, in opset 1 a float; throws `errc::invalid_model` unless it is
/// positive.
double norm_order(const attributes& attrs);

} // namespace troupe

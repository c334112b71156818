// Dims of values that the caller has not given.
#pragma once

#include "graph/dim.hpp"
#include "troupe/tensor.hpp"

namespace troupe {

/// Returns dims with these values of their symbols; one that has no value gets 1 from here on.
shape dims_or_ones(const symbolic_shape& dims, bindings& values);

} // namespace troupe

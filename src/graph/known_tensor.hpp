// Host-known elements (`value::known`) as a tensor.
#pragma once

#include "graph/graph.hpp"

namespace troupe {

/// Returns a tensor of `info`'s type and these dims that holds `elements`, row-major. Throws `errc::internal` if they
/// do not fill the dims.
tensor known_tensor(const value& info, const shape& dims, std::span<const int64_t> elements);

} // namespace troupe

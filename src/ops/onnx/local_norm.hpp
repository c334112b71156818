// What the normalisations without learnt parameters normalise, for their reference and GPU kernels.
#pragma once

#include "graph/attributes.hpp"

#include <vector>

namespace troupe {

/// Returns for each axis whether MeanVarianceNormalization averages over it.
std::vector<bool> averaged_axes(const attributes& attrs, size_t rank);

} // namespace troupe

// Copies in which every axis has its own table of source positions: Pad, and Resize to the nearest neighbour.
#pragma once

#include "tensor/elements.hpp"

namespace troupe {

/// y[i0, i1, …] = x[offsets[0][i0] + offsets[1][i1] + …], row-major over the tables' sizes, or `*fill` if one of the
/// offsets is negative. Offsets are in elements; there is at least one axis.
void gather_axes(dtype type, const void* x, void* y, std::span<const std::vector<int64_t>> offsets, const void* fill);

} // namespace troupe

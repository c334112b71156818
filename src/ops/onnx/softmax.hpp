// What Softmax, LogSoftmax and Hardmax normalise, for their reference and GPU kernels.
#pragma once

#include "graph/attributes.hpp"
#include "ops/onnx/row_extent.hpp"

#include <span>

namespace troupe {

enum class softmax_kind : uint32_t { softmax, log_softmax, hardmax };

/// Returns the operand as [outer, size, inner], where `size` is normalised; `flatten`: the matrix form of opsets before
/// 13.
row_extent softmax_extent(const attributes& attrs, std::span<const int64_t> dims, bool flatten);

} // namespace troupe

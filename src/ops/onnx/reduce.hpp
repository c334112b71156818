// What a reduction reduces, for its reference and GPU kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe {

enum class reduce_kind : uint32_t { sum, mean, maximum, minimum, product, l1, l2, log_sum, log_sum_exp, sum_square };

/// Returns for each of `rank` axes whether it is reduced; none named means all, or none if `noop_if_empty`.
std::vector<bool> reduced_axes(const std::vector<int64_t>& axes, size_t rank, bool noop_if_empty);

} // namespace troupe

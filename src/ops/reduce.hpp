// What a reduction reduces, for its reference and GPU kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe {

/// The numbers are those of shaders/reduce.comp.
enum class reduce_kind : uint32_t {
  sum = 0,
  mean = 1,
  maximum = 2,
  minimum = 3,
  product = 4,
  l1 = 5,
  l2 = 6,
  log_sum = 7,
  log_sum_exp = 8,
  sum_square = 9
};

/// Returns for each of `rank` axes whether it is reduced; none named means all, or none where `noop_if_empty`.
std::vector<bool> reduced_axes(const std::vector<int64_t>& axes, size_t rank, bool noop_if_empty);

} // namespace troupe

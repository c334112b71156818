#include "plan/split/cuts.hpp"

#include <algorithm>
#include <numeric>

namespace troupe {
namespace {

/// The pieces of a value whose boundaries are numbers.
std::vector<part_piece> constant_pieces(const part_bounds& bounds, int64_t first, int64_t end) {
  std::vector<part_piece> pieces;
  for (size_t j = 0; j + 1 < bounds.size(); ++j) {
    const int64_t begin = bounds[j].constant();
    const int64_t from = std::max(first, begin), to = std::min(end, bounds[j + 1].constant());
    if (from < to)
      pieces.push_back({j, from - begin, to - begin});
  }
  return pieces;
}

} // namespace

part_bounds divide(const dim& length, const split_team& team, int64_t grain) {
  part_bounds bounds{0};
  for (size_t i = 1; i < team.size(); ++i) {
    const int64_t common = std::gcd(team.begin[i], split_team::steps);
    bounds.push_back(floor_div(length * (team.begin[i] / common), grain * (split_team::steps / common)) * grain);
  }
  bounds.push_back(length);
  return bounds;
}

std::optional<std::vector<part_piece>> pieces_of(const part_bounds& bounds, size_t i, const dim& first, const dim& end,
                                                 std::vector<dim>& nonnegative) {
  if (is_constant(bounds) && first.is_constant() && end.is_constant())
    return constant_pieces(bounds, first.constant(), end.constant());
  const dim before = bounds[i] - first, after = end - bounds[i + 1], length = bounds[i + 1] - bounds[i];
  if (!before.is_constant() || !after.is_constant())
    return std::nullopt;
  const int64_t low = before.constant(), high = after.constant();
  if ((low > 0 && i == 0) || (high > 0 && i + 2 >= bounds.size()))
    return std::nullopt;
  std::vector<part_piece> pieces;
  if (low > 0) {
    const dim other = bounds[i] - bounds[i - 1];
    nonnegative.push_back(other - low);
    pieces.push_back({i - 1, other - low, other});
  }
  const dim from = std::max<int64_t>(0, -low), to = length + std::min<int64_t>(0, high);
  nonnegative.push_back(to - from);
  pieces.push_back({i, from, to});
  if (high > 0) {
    nonnegative.push_back(bounds[i + 2] - bounds[i + 1] - high);
    pieces.push_back({i + 1, 0, high});
  }
  return pieces;
}

std::optional<window_need> need_of(const axis_window& window, const part_bounds& bounds, size_t i, const dim& length,
                                   int64_t pad_end, std::vector<dim>& nonnegative) {
  const dim first = bounds[i] * window.stride - window.begin;
  const dim end = (bounds[i + 1] - 1) * window.stride - window.begin + ((window.size - 1) * window.dilation + 1);
  const bool is_last = i + 2 == bounds.size();
  window_need need{i == 0 ? 0 : first, is_last ? length : end, i == 0 ? window.begin : 0, is_last ? pad_end : 0};
  if (i > 0 && first.is_constant()) {
    need.first = std::max<int64_t>(0, first.constant());
    need.pad_begin = std::max<int64_t>(0, -first.constant());
  } else if (i > 0) {
    nonnegative.push_back(first);
  }
  if (!is_last && end.is_constant() && length.is_constant()) {
    need.end = std::min(length.constant(), end.constant());
    need.pad_end = std::max<int64_t>(0, end.constant() - length.constant());
  } else if (!is_last) {
    nonnegative.push_back(length - end);
  }
  const dim count = need.end - need.first;
  if (count.is_constant() && count.constant() < 1)
    return std::nullopt;
  return need;
}

} // namespace troupe

#include "ops/onnx/reduction_walk.hpp"

#include "ops/operand.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Returns the groups of `dims`, outermost first; axes of size 1 join any group.
std::vector<axis_group> group_axes(std::span<const int64_t> dims, const std::vector<bool>& reduced) {
  std::vector<axis_group> groups;
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0; stride *= dims[i]) {
    if (dims[i] == 1)
      continue;
    if (!groups.empty() && groups.back().reduced == reduced[i])
      groups.back().size *= dims[i];
    else
      groups.push_back({dims[i], stride, reduced[i]});
  }
  std::reverse(groups.begin(), groups.end());
  return groups;
}

/// Returns the offsets of all index combinations of the groups that are (or are not) reduced, row-major.
std::vector<int64_t> offsets_of(std::span<const axis_group> groups, bool reduced) {
  std::vector<int64_t> offsets{0};
  for (const axis_group& g : groups) {
    if (g.reduced != reduced)
      continue;
    std::vector<int64_t> next;
    next.reserve(offsets.size() * static_cast<size_t>(g.size));
    for (int64_t base : offsets)
      for (int64_t i = 0; i < g.size; ++i)
        next.push_back(base + i * g.stride);
    offsets = std::move(next);
  }
  return offsets;
}

} // namespace

reduction_walk::reduction_walk(std::span<const int64_t> dims, const std::vector<bool>& reduced) {
  std::vector<axis_group> groups = group_axes(dims, reduced);
  for (const axis_group& g : groups)
    count *= g.reduced ? g.size : 1;
  if (!groups.empty()) {
    inner = groups.back();
    groups.pop_back();
  }
  kept = offsets_of(groups, false);
  walked = offsets_of(groups, true);
}

int64_t reduction_walk::grain() const {
  const int64_t work = inner.size * static_cast<int64_t>(walked.size());
  return std::max<int64_t>(1, elementwise_grain / std::max<int64_t>(1, work));
}

} // namespace troupe

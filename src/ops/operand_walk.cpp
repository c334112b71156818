#include "ops/operand_walk.hpp"

#include <algorithm>
#include <numeric>

namespace troupe {
namespace {

/// Logical axes from the innermost in memory to the outermost.
std::vector<size_t> memory_order(size_t rank, layout l) {
  std::vector<size_t> order(rank);
  std::iota(order.rbegin(), order.rend(), size_t{0});
  if (l == layout::channels_last && rank >= 3) {
    std::erase(order, size_t{1});
    order.insert(order.begin(), 1);
  }
  return order;
}

} // namespace

shape layout_strides(const operand& o) {
  shape strides(o.dims.size());
  int64_t step = 1;
  for (size_t axis : memory_order(o.dims.size(), o.layout)) {
    strides[axis] = step;
    step *= o.dims[axis];
  }
  return strides;
}

operand_walk walk_of(const operand& out, std::span<const operand> operands) {
  const size_t rank = out.dims.size();
  const std::vector<size_t> order = memory_order(rank, out.layout);
  operand_walk walk;
  for (size_t axis : order)
    walk.dims.push_back(out.dims[axis]);
  for (const operand& o : operands) {
    const shape own = layout_strides(o);
    shape steps;
    for (size_t axis : order) {
      const int64_t at = static_cast<int64_t>(axis) - static_cast<int64_t>(rank) + static_cast<int64_t>(own.size());
      const int64_t size = at < 0 ? 1 : o.dims[static_cast<size_t>(at)];
      if (size != 1 && size != out.dims[axis])
        fail(errc::invalid_input, "shape {} does not broadcast to {}", to_string(o.dims), to_string(out.dims));
      steps.push_back(size == 1 ? 0 : own[static_cast<size_t>(at)]);
    }
    walk.strides.push_back(std::move(steps));
  }
  merge_axes(walk);
  return walk;
}

void merge_axes(operand_walk& walk) {
  operand_walk merged{{}, std::vector<shape>(walk.strides.size())};
  for (size_t axis = 0; axis < walk.dims.size(); ++axis) {
    if (walk.dims[axis] == 1)
      continue;
    bool joins = !merged.dims.empty();
    for (size_t k = 0; joins && k < walk.strides.size(); ++k)
      joins = walk.strides[k][axis] == merged.strides[k].back() * merged.dims.back();
    if (joins) {
      merged.dims.back() *= walk.dims[axis];
      continue;
    }
    merged.dims.push_back(walk.dims[axis]);
    for (size_t k = 0; k < walk.strides.size(); ++k)
      merged.strides[k].push_back(walk.strides[k][axis]);
  }
  if (merged.dims.empty()) {
    merged.dims = {1};
    for (shape& strides : merged.strides)
      strides = {0};
  }
  walk = std::move(merged);
}

walk_mode mode_of(const operand_walk& walk, size_t k) {
  const bool repeats = std::all_of(walk.strides[k].begin(), walk.strides[k].end(), [](int64_t s) { return s == 0; });
  if (repeats)
    return walk_mode::single;
  int64_t step = 1;
  for (size_t axis = 0; axis < walk.dims.size(); ++axis) {
    if (walk.strides[k][axis] != step)
      return walk_mode::strided;
    step *= walk.dims[axis];
  }
  return walk_mode::like_output;
}

} // namespace troupe

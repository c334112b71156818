#include "launch/row_walk.hpp"
#include "launch/parameters.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr int64_t most_row_parts = 256;

} // namespace

row_extent row_walk::extent() const {
  const int64_t rows = results * parts, inner = side_by_side() ? kept.dims[0] : 1;
  return {inner > 0 ? rows / inner : 0, per_part, inner};
}

std::vector<uint32_t> row_walk::parameters(float epsilon, bool merging) const {
  shader::reduce_walk block{.rows = merging ? results : results * parts,
                            .count = count,
                            .kept_rank = kept.dims.size(),
                            .reduced_rank = reduced.dims.size(),
                            .parts = parts,
                            .per_part = per_part,
                            .epsilon = epsilon,
                            .results = results};
  for (size_t i = 0; i < kept.dims.size(); ++i)
    block.axes[i] = {kept.dims[i], kept.strides[0][i]};
  for (size_t i = 0; i < reduced.dims.size(); ++i) {
    block.axes[i].z = reduced.dims[i];
    block.axes[i].w = reduced.strides[0][i];
  }
  return words_of(block);
}

std::optional<row_walk> walk_rows(const operand& o, const std::vector<bool>& reduced) {
  const shape strides = layout_strides(o);
  row_walk walk{{{}, {{}}}, {{}, {{}}}};
  for (size_t i = o.dims.size(); i-- > 0;) {
    operand_walk& w = reduced[i] ? walk.reduced : walk.kept;
    w.dims.push_back(o.dims[i]);
    w.strides[0].push_back(strides[i]);
  }
  merge_axes(walk.kept);
  merge_axes(walk.reduced);
  if (walk.kept.dims.size() > max_walk_rank || walk.reduced.dims.size() > max_walk_rank)
    return std::nullopt;
  walk.results = volume(walk.kept.dims);
  walk.count = walk.per_part = volume(walk.reduced.dims);
  return walk;
}

void cut_into_parts(row_walk& walk, const gpu_features& gpu) {
  if (walk.results == 0 || walk.count == 0)
    return;
  // Side by side a row is an invocation's, else a workgroup's.
  const bool side = walk.side_by_side();
  const int64_t fill = int64_t{gpu.units} * (side ? 512 : 2), least = side ? 64 : 8192;
  const int64_t parts = std::clamp<int64_t>(std::min(fill / walk.results, walk.count / least), 1, most_row_parts);
  walk.per_part = (walk.count + parts - 1) / parts;
  walk.parts = (walk.count + walk.per_part - 1) / walk.per_part;
}

} // namespace troupe

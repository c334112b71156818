// How GPU kernels that reduce over any axes find the elements of a result (shaders/reduce_walk.glsl).
#pragma once

#include "launch/row_team.hpp"
#include "ops/operand_walk.hpp"

namespace troupe {

/// The kept and the reduced axes of an operand, each merged; `dims` and `strides[0]` of both are used.
struct row_walk {
  operand_walk kept, reduced;
  int64_t results = 1, count = 1; // count: elements of a result
  int64_t parts = 1, per_part = 1;

  /// Whether neighbouring results begin with neighbouring elements.
  bool side_by_side() const { return kept.strides[0][0] == 1 && kept.dims[0] >= 16; }
  /// Returns the rows as teams see them: results · parts rows of `per_part` elements.
  row_extent extent() const;
  /// Returns the parameters, for launches with a row for each part or (`merging`) each result.
  std::vector<uint32_t> parameters(float epsilon, bool merging = false) const;
};

/// Returns the walk over the axes of `o`; nullopt if they are too many for the kernels.
std::optional<row_walk> walk_rows(const operand& o, const std::vector<bool>& reduced);

/// Cuts results into parts where they are too few to fill the device.
void cut_into_parts(row_walk& walk, const gpu_features& gpu);

} // namespace troupe

// Which invocations compute a row on a GPU: the teams of shaders/team.glsl, for the kernels that reduce over rows.
#pragma once

#include "launch/launch.hpp"
#include "launch/parameters.hpp"
#include "ops/onnx/row_extent.hpp"

#include <optional>

namespace troupe {

enum class team_kind : uint32_t {
  invocation = shader::team_invocation,
  subgroup = shader::team_subgroup,
  group = shader::team_group
};

/// How teams are made; see the shader.
struct row_team {
  uint32_t threads = 256; // of a workgroup
  team_kind kind = team_kind::group;
  uint32_t lanes = 256; // invocations of a team
  uint32_t rows = 1;    // of a workgroup
  uint32_t items = 1;   // vectors of an invocation that it keeps
  uint32_t width = 1;   // elements of a vector
  bool plain = false;   // without subgroup arithmetic

  /// Returns specialisation constants 0 … 5 of kernels that keep rows (shaders/row.glsl).
  std::vector<uint32_t> constants() const;
  /// Returns specialisation constants 0 … 3, and a kernel's own after them.
  std::vector<uint32_t> constants(std::initializer_list<uint32_t> own) const;
  /// Returns the workgroups for `count` rows.
  std::array<uint32_t, 3> groups(int64_t count, const gpu_features& gpu) const;
};

/// Returns a good team for rows that are read as vectors of `width` elements; without subgroup arithmetic if `plain`.
row_team choose_team(const row_extent& e, uint32_t width, bool plain, const gpu_features& gpu);

/// Returns the teams to offer as alternatives, best first: with subgroup arithmetic if the GPU has it, and without.
std::vector<row_team> row_teams(const row_extent& e, uint32_t width, const gpu_features& gpu);

/// Returns the shader for floats of `type`: "softmax.f32_plain"; nullopt if the GPU does not compute with them.
std::optional<std::string> row_shader(std::string_view stem, dtype type, bool plain, const gpu_features& gpu);

} // namespace troupe

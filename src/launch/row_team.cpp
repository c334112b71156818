#include "launch/row_team.hpp"

#include "base/round_up.hpp"

#include <algorithm>
#include <bit>

namespace troupe {
namespace {

/// Registers of an invocation for the elements of its row.
constexpr int64_t max_kept_elements = 32, max_kept_single = 16;
/// Vectors that an invocation of a subgroup may have where rows are enough to fill the device with subgroups.
constexpr int64_t few_vectors = 4;

/// Returns the largest power of two that is not above `x`.
int64_t floor_power(int64_t x) {
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(x, 1))));
}

/// Invocations of a group that shares one row: enough for a vector each, in whole subgroups.
int64_t group_for(int64_t vectors, int64_t rows, bool plain, const gpu_features& gpu) {
  const int64_t step = plain ? 1 : std::clamp<int64_t>(gpu.subgroup_size, 1, 64);
  // A row that has the device to itself gets the largest group.
  const int64_t most = std::min<int64_t>(gpu.max_group_size, rows <= gpu.units / 2 && vectors > 2048 ? 1024 : 256);
  const int64_t wanted = std::clamp<int64_t>(ceil_div(vectors, step) * step, std::min<int64_t>(32, most), most);
  if (!plain)
    return wanted;
  const auto power = next_power_of_two(wanted);
  return power <= most ? power : floor_power(most);
}

} // namespace

std::vector<uint32_t> row_team::constants() const {
  return {threads, static_cast<uint32_t>(kind), lanes, rows, items, width};
}

std::vector<uint32_t> row_team::constants(std::initializer_list<uint32_t> own) const {
  std::vector<uint32_t> words{threads, static_cast<uint32_t>(kind), lanes, rows};
  words.insert(words.end(), own);
  return words;
}

std::array<uint32_t, 3> row_team::groups(int64_t count, const gpu_features& gpu) const {
  return flat_groups(count, rows, gpu);
}

row_team choose_team(const row_extent& e, uint32_t width, bool plain, const gpu_features& gpu) {
  row_team t;
  t.plain = plain;
  t.width = width;
  const int64_t vectors = e.size / t.width, threads = floor_power(std::min<int64_t>(gpu.max_group_size, 256));
  const bool side_by_side = e.inner >= 16 && (e.rows() >= int64_t{gpu.units} * 64 || e.size <= 64);
  int64_t lanes = 1, teams = 1;
  if (side_by_side || vectors <= 2) {
    t.kind = team_kind::invocation;
    t.threads = static_cast<uint32_t>(std::min<int64_t>(threads, 64));
    teams = t.threads;
  } else if (!plain && vectors <= few_vectors * gpu.subgroup_size &&
             (vectors <= gpu.subgroup_size || e.rows() >= int64_t{gpu.units} * 16)) {
    t.kind = team_kind::subgroup;
    lanes = gpu.subgroup_size;
    t.threads = static_cast<uint32_t>(std::max<int64_t>(std::min<int64_t>(threads, 128), lanes));
    teams = std::max<int64_t>(1, t.threads / lanes);
  } else if (plain && vectors <= 64) {
    lanes = std::min<int64_t>(threads, next_power_of_two(vectors));
    t.threads = static_cast<uint32_t>(std::min<int64_t>(threads, 64));
    lanes = std::min<int64_t>(lanes, t.threads);
    teams = t.threads / lanes;
  } else {
    lanes = group_for(vectors, e.rows(), plain, gpu);
    t.threads = static_cast<uint32_t>(lanes);
  }
  t.lanes = static_cast<uint32_t>(lanes);
  t.rows = static_cast<uint32_t>(teams);
  const int64_t most_items = t.width == 4 ? max_kept_elements / 4 : max_kept_single;
  t.items = static_cast<uint32_t>(std::clamp<int64_t>(ceil_div(vectors, lanes), 1, most_items));
  return t;
}

std::vector<row_team> row_teams(const row_extent& e, uint32_t width, const gpu_features& gpu) {
  std::vector<row_team> teams;
  if (gpu.subgroup_arithmetic)
    teams.push_back(choose_team(e, width, false, gpu));
  if (teams.empty() || teams[0].kind != team_kind::invocation)
    teams.push_back(choose_team(e, width, true, gpu));
  return teams;
}

std::optional<std::string> row_shader(std::string_view stem, dtype type, bool plain, const gpu_features& gpu) {
  const auto variant = float_variant(type, gpu);
  if (!variant)
    return std::nullopt;
  return fmt::format("{}.{}{}", stem, *variant, plain ? "_plain" : "");
}

} // namespace troupe

#include "launch/tiling.hpp"

#include "base/round_up.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace troupe {
namespace {

/// Sums are split no finer than this.
constexpr uint32_t max_splits = 32;

/// How a tile does on one multiprocessor, in µs, as fitted to times on an H100, such that the model's choices lose
/// least: of products by themselves (`bench_kernel`) and of the calls of six models (`troupe profile --tune`), batches
/// of 1 and 32. The choices lose 0 to 4 % to the best way that was measured. Other devices only need the order within a
/// family.
struct tile_speed {
  tiling tile;
  double step;       // a depth step of a group that has the multiprocessor for itself
  double shared;     // a depth step of a busy multiprocessor, divided by its groups
  uint32_t resident; // groups that a multiprocessor holds
  double fixed;      // a group's first loads and its epilogue
};

// The first wins if the model sees no difference. Tiles with slices (`tiling::slices`) have times by which they are
// chosen where they won clearly: 784 × 128 × 512 takes 12.5 instead of 16.4 µs.
constexpr auto tiled = std::to_array<tile_speed>({
    {{64, 32, 32, 32, 4, 4}, 1.043, 0.398, 6, 2.55},
    {{64, 32, 32, 16, 4, 4}, 0.62, 0.2, 8, 1.88},
    {{128, 32, 32, 32, 4, 4}, 0.516, 0.338, 6, 2.83},
    {{256, 32, 32, 64, 4, 4}, 0.637, 0.587, 2, 3.64},
    {{128, 32, 64, 16, 4, 4}, 0.72, 0.331, 4, 1.68},
    {{128, 64, 32, 32, 4, 4}, 0.943, 0.622, 4, 3.97},
    {{128, 64, 64, 16, 8, 4}, 0.858, 0.584, 2, 3.3},
    {{256, 64, 64, 32, 4, 4}, 1.461, 1.346, 2, 2.02},
    {{256, 128, 128, 16, 8, 8}, 1.951, 1.034, 1, 7.5},
});

// Invocations beyond those of a tile's parts of `rows` × `columns` are slices, which share the depths
// (shaders/gemm_cooperative.glsl).
// clang-format off
constexpr auto cooperative = std::to_array<tile_speed>({
    {{64, 16, 32, 64, 16, 16}, 0.473, 0.281, 6, 1.88},
    {{128, 32, 32, 64, 16, 16}, 0.572, 0.201, 5, 1.68},
    {{256, 32, 32, 64, 16, 16}, 0.349, 0.203, 2, 2.16},
    {{256, 32, 32, 128, 16, 32}, 0.678, 0.673, 2, 1.76},
    {{512, 32, 32, 128, 16, 16}, 0.561, 0.561, 1, 1.78},
    {{256, 32, 64, 64, 32, 32}, 0.607, 0.336, 2, 2.2},
    {{256, 32, 128, 64, 32, 32}, 0.746, 0.687, 2, 3.32},
    {{512, 64, 32, 128, 32, 32}, 0.879, 0.879, 1, 4.83},
    {{128, 64, 48, 64, 16, 48}, 0.737, 0.447, 5, 3.63},
    {{128, 64, 64, 32, 32, 32}, 0.782, 0.251, 4, 3.21},
    {{256, 64, 64, 32, 32, 32}, 0.225, 0.225, 3, 7.01},
    {{256, 64, 64, 64, 32, 32}, 0.542, 0.542, 1, 4.89},
    {{512, 64, 64, 64, 32, 32}, 0.481, 0.481, 1, 4.42},
    {{256, 64, 96, 64, 16, 48}, 0.84, 0.769, 5, 4.05},
    {{512, 64, 96, 128, 16, 48}, 1.3, 1.3, 2, 4.87},
    {{512, 64, 128, 64, 32, 32}, 0.889, 0.889, 2, 4.69},
    {{256, 128, 64, 32, 32, 32}, 0.862, 0.316, 2, 3.34},
    {{512, 128, 64, 64, 32, 32}, 0.777, 0.777, 1, 4.49},
    {{256, 128, 128, 32, 64, 32}, 0.792, 0.792, 1, 4.97},
    {{256, 128, 128, 64, 64, 32}, 1.22, 1.22, 1, 6.33},
    {{512, 128, 128, 64, 64, 32}, 1.23, 1.23, 1, 6.25},
    {{256, 128, 256, 32, 64, 64}, 1.11, 1.11, 1, 9.53},
    {{256, 256, 128, 32, 64, 64}, 1.13, 1.13, 1, 9.07},
    {{512, 256, 128, 32, 64, 32}, 1.07, 1.07, 1, 7.16},
});
// clang-format on

// Of float32 in two pieces (shaders/float_pieces.glsl).
constexpr auto cooperative_floats = std::to_array<tile_speed>({
    {{128, 64, 64, 32, 32, 32}, 1.4, 0.804, 4, 14.2},
    {{256, 64, 64, 32, 16, 32}, 1.04, 1.04, 3, 10.1},
    {{256, 64, 128, 32, 32, 32}, 1.34, 1.34, 2, 13.7},
    {{512, 64, 128, 32, 16, 32}, 1.25, 1.25, 1, 6.56},
    {{512, 128, 64, 32, 16, 32}, 1.38, 1.38, 1, 4.92},
    {{512, 128, 128, 32, 32, 32}, 2.17, 2.17, 1, 10.9},
});

// The same tiles of bytes, whose epilogues take longer.
constexpr auto cooperative_bytes = std::to_array<tile_speed>({
    {{64, 16, 32, 64, 16, 16}, 0.609, 0.229, 3, 1.22},
    {{128, 32, 32, 64, 16, 16}, 0.442, 0.249, 2, 1.15},
    {{256, 32, 32, 64, 16, 16}, 0.436, 0.252, 2, 0.699},
    {{256, 32, 32, 128, 16, 32}, 0.64, 0.508, 1, 1.47},
    {{512, 32, 32, 128, 16, 16}, 0.588, 0.516, 1, 1.11},
    {{256, 32, 64, 64, 32, 32}, 0.472, 0.39, 1, 1.52},
    {{512, 64, 32, 128, 32, 32}, 0.935, 0.686, 1, 3.41},
    {{128, 64, 64, 32, 32, 32}, 0.817, 0.319, 2, 1.56},
    {{256, 64, 64, 32, 32, 32}, 0.566, 0.557, 6, 3.87},
    {{256, 64, 64, 64, 32, 32}, 0.692, 0.546, 1, 3.4},
    {{512, 64, 64, 64, 32, 32}, 0.726, 0.569, 1, 2.53},
    {{512, 64, 64, 128, 32, 32}, 1.13, 0.984, 1, 4.53},
    {{256, 128, 64, 32, 32, 32}, 0.951, 0.609, 1, 1.71},
    {{512, 128, 64, 64, 32, 32}, 0.79, 0.786, 1, 4.67},
    {{512, 64, 128, 64, 32, 32}, 0.976, 0.865, 1, 3.67},
    {{256, 128, 128, 32, 64, 32}, 0.957, 0.779, 1, 5.26},
    {{512, 128, 128, 64, 64, 32}, 1.41, 1.31, 1, 6.42},
    {{512, 256, 128, 32, 64, 32}, 1.44, 1.44, 1, 5.17},
});

// Matrices of groups, whose kernels know the sizes of the right matrix (shaders/matmul_matrices.comp): fitted on an
// H200 to products of 512 to 4,096 rows. Of fewer rows than a tile has, the large tiles take longer than that.
constexpr auto matrices = std::to_array<tile_speed>({
    {{256, 64, 64, 128, 0, 0}, 1.099, 1.099, 1, 2.0},
    {{128, 128, 64, 64, 0, 0}, 0.6, 0.545, 4, 5.0},
    {{128, 128, 128, 64, 0, 0}, 0.8, 0.75, 2, 8.0},
});

/// What splitting costs: another launch, and its traffic per million partial sums.
struct split_cost {
  double fixed, per_million;
};

constexpr split_cost tiled_split{3.0, 1.2}, matrix_split{4.0, 1.2};

int64_t shared_bytes(const tiling& t, tile_family family) {
  if (family == tile_family::tiled)
    return int64_t{2} * (t.m + t.n) * (t.depth + 4) * 4;
  const bool pieces = family == tile_family::cooperative_floats;
  const int64_t element = pieces ? 4 : 2, scales = pieces ? 8 * int64_t{t.m + t.n} + 16 : 0;
  const auto operand = [&](int64_t lines) { return element * std::max(lines * (t.depth + 8), t.depth * (lines + 8)); };
  const int64_t sums = int64_t{t.threads} / 32 * 16 * 80; // in A's place
  if (const int64_t two = 2 * (operand(t.m) + operand(t.n)); two > shader::product_double_buffer_bytes)
    return std::max<int64_t>(std::max(operand(t.m), sums) + operand(t.n) + scales, shader::product_double_buffer_bytes);
  return std::max(2 * operand(t.m), sums) + 2 * operand(t.n) + scales;
}

std::span<const tile_speed> tiles_of(tile_family family) {
  switch (family) {
    case tile_family::tiled: return tiled;
    case tile_family::cooperative: return cooperative;
    case tile_family::cooperative_floats: return cooperative_floats;
    case tile_family::cooperative_bytes: return cooperative_bytes;
    case tile_family::matrices: break;
  }
  return matrices;
}

/// Whether a device can run a tile, and it is not hopeless for the product.
bool fits(const tiling& t, const product_size& size, tile_family family, const gpu_features& gpu) {
  constexpr int64_t most_gathered = 2; // vectors of an invocation and step: with more it waits for single elements
  if (t.threads > gpu.max_group_size || (family == tile_family::tiled && t.slices() > 1 && !size.slices))
    return false;
  if (family == tile_family::matrices) // the driver sees to shared memory
    return true;
  if (family != tile_family::tiled && size.gathers &&
      (t.m + t.n) * t.depth / product_width(family) > most_gathered * t.threads)
    return false;
  return shared_bytes(t, family) <= gpu.shared_bytes;
}

/// Returns the predicted time of a tiling in µs, but for what a launch costs.
double predict(const tile_speed& s, const tiling& t, const split_cost& split, const product_size& size,
               const gpu_features& gpu) {
  const double groups = static_cast<double>(ceil_div(size.m, t.m) * ceil_div(size.n, t.n) * size.batches) * t.splits;
  const double busiest = std::ceil(groups / gpu.units); // groups of the multiprocessor that gets most
  const uint32_t whole_steps = t.split_depth / t.depth; // without a rest
  const double steps = whole_steps;
  const auto round = [&](double together) {
    return together <= 0 ? 0 : s.fixed + steps * std::max(s.step, together * s.shared);
  };
  const double full = std::floor(busiest / s.resident);
  double time = full * round(s.resident) + round(busiest - full * s.resident);
  if (t.splits > 1)
    time += split.fixed + split.per_million * static_cast<double>(size.m * size.n * size.batches) * t.splits / 1e6;
  return time;
}

/// Calls `use` with each tiling that fits, tile by tile, and its predicted time.
template <class Use>
void for_each_tiling(const product_size& size, tile_family family, bool may_split, const gpu_features& gpu, Use&& use) {
  for (const tile_speed& s : tiles_of(family)) {
    if (!fits(s.tile, size, family, gpu))
      continue;
    const int64_t steps = std::max<int64_t>(1, ceil_div(size.k, s.tile.depth));
    for (uint32_t splits = size.split ? 2 : 1; splits <= (may_split ? max_splits : 1); ++splits) {
      const int64_t split_steps = ceil_div(steps, splits);
      if (splits > 1 && (split_steps < 2 || ceil_div(steps, split_steps) != splits))
        continue;
      tiling t = s.tile;
      t.splits = splits;
      t.split_depth = static_cast<uint32_t>(split_steps) * t.depth;
      t.time = predict(s, t, family == tile_family::tiled ? tiled_split : matrix_split, size, gpu);
      use(t);
    }
  }
}

bool same_tile(const tiling& a, const tiling& b) {
  return a.constants() == b.constants();
}

/// Adds the best split of the tile that a product takes which may be whole, unless `list` has it.
void add_split_of_usual(std::vector<tiling>& list, product_size size, tile_family family, bool may_split,
                        const gpu_features& gpu) {
  std::optional<tiling> split;
  size.split = false;
  const auto usual = choose_tiling(size, family, may_split, gpu);
  size.split = true;
  for_each_tiling(size, family, may_split, gpu, [&](const tiling& t) {
    if (usual && same_tile(t, *usual) && (!split || t.time < split->time))
      split = t;
  });
  if (split && !same_tile(*split, list[0]))
    list.push_back(*split);
}

} // namespace

std::string tiling::name() const {
  return fmt::format("{}x{}x{}/{}{}", m, n, depth, threads, splits > 1 ? fmt::format("*{}", splits) : "");
}

int64_t product_width(tile_family family) {
  return family == tile_family::tiled || family == tile_family::cooperative_floats ? 4 : 8;
}

std::optional<tiling> choose_tiling(const product_size& size, tile_family family, bool may_split,
                                    const gpu_features& gpu) {
  std::optional<tiling> best;
  for_each_tiling(size, family, may_split, gpu, [&](const tiling& t) {
    if (!best || t.time < best->time)
      best = t;
  });
  return best;
}

std::vector<tiling> list_tilings(const product_size& size, tile_family family, bool may_split, const gpu_features& gpu,
                                 way_range ways, std::span<const std::vector<uint32_t>> only) {
  constexpr std::ptrdiff_t splits_of_tile = 2;
  std::vector<tiling> list;
  if (ways == way_range::usual) {
    if (const auto best = choose_tiling(size, family, may_split, gpu))
      list.push_back(*best);
    if (size.split && !list.empty())
      add_split_of_usual(list, size, family, may_split, gpu);
    return list;
  }
  for_each_tiling(size, family, may_split, gpu, [&](const tiling& t) {
    if (only.empty() || std::ranges::find(only, t.constants()) != only.end())
      list.push_back(t);
  });
  std::ranges::stable_sort(list, {}, &tiling::time);
  const bool every = ways == way_range::every;
  std::vector<tiling> kept;
  for (const tiling& t : list)
    if (every || t.time <= hopeless_time * list[0].time)
      if ((every && t.splits == 1) ||
          std::ranges::count_if(kept, [&](const tiling& k) { return same_tile(k, t); }) < splits_of_tile)
        kept.push_back(t);
  for (size_t i = 0, count = every ? kept.size() : 0; i < count; ++i) {
    kept[i].asks_first = false;
    kept.push_back(kept[i]);
    kept.back().asks_first = true;
  }
  return kept;
}

uint32_t tile_flags(const tiling& t, const std::array<uint32_t, 3>& groups, int64_t batches, const gpu_features& gpu) {
  constexpr uint32_t matrix = 16 * 16;
  const uint64_t rounds = t.rows * t.columns <= 2 * matrix ? 3 : 1; // of groups; what they ask for takes registers
  const bool few = uint64_t{groups[0]} * groups[1] * groups[2] <= rounds * gpu.units;
  return (t.splits > 1 ? shader::product_split : 0) | (batches > 1 ? shader::product_batched : 0) |
         (t.asks_first.value_or(few) ? shader::product_asks_first : 0);
}

uint32_t column_band(const product_size& size) {
  // In bands of eight an H200 had 4096³, whose operands its cache does not hold, 5 % sooner by tiles of 128 × 256, and
  // 6304 × 3072 × 768, which it holds, 5 % later. By tiles of 128 × 128 it has 4096³ as soon without.
  constexpr int64_t cached_bytes = int64_t{32} << 20, element = 2;
  return (size.m + size.n) * size.k * element > cached_bytes ? 8 : 0;
}

shader::uvec2 divisor(int64_t d) {
  const auto value = static_cast<uint64_t>(std::max<int64_t>(d, 1));
  const auto shift = static_cast<uint32_t>(std::bit_width(value - 1));
  const uint64_t multiplier = ((uint64_t{1} << 32) * ((uint64_t{1} << shift) - value)) / value + 1;
  return {multiplier, shift};
}

} // namespace troupe

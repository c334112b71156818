#include "launch/tiling.hpp"

#include "base/round_up.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace troupe {
namespace {

/// Sums are split no finer than this.
constexpr uint32_t max_splits = 32;

/// How a tile does on one multiprocessor, in µs. Fitted to times on an H200 (the products of resnet50, mobilenet_v2 and
/// bert_base, and large ones) such that the model's choice loses least; other devices only need the order.
struct tile_speed {
  tiling tile;
  double step;       // a depth step of a group that has the multiprocessor for itself
  double shared;     // a depth step of a busy multiprocessor, divided by its groups
  uint32_t resident; // groups that a multiprocessor holds
  double fixed;      // a group's first loads and its epilogue
};

// The first wins if the model sees no difference.
constexpr auto tiled = std::to_array<tile_speed>({
    {{64, 32, 32, 32, 4, 4}, 0.64, 0.289, 4, 1.0},
    {{64, 32, 32, 16, 4, 4}, 0.32, 0.114, 4, 1.0},
    {{128, 32, 64, 16, 4, 4}, 0.309, 0.225, 6, 1.26},
    {{128, 64, 32, 32, 4, 4}, 0.498, 0.488, 2, 1.43},
    {{128, 64, 64, 16, 8, 4}, 0.468, 0.284, 2, 1.53},
    {{256, 64, 64, 32, 4, 4}, 0.639, 0.639, 3, 1.35},
    {{256, 128, 128, 16, 8, 8}, 1.0, 1.0, 12, 2.76},
});

constexpr auto cooperative = std::to_array<tile_speed>({
    {{64, 16, 32, 64, 16, 16}, 0.677, 0.318, 3, 0.2},
    {{128, 32, 32, 64, 16, 16}, 0.564, 0.444, 2, 0.42},
    {{128, 32, 32, 128, 16, 16}, 1.075, 0.557, 1, 0.89},
    {{128, 32, 64, 64, 16, 32}, 0.766, 0.766, 2, 1.78},
    {{128, 64, 64, 32, 32, 32}, 0.61, 0.468, 2, 1.24},
    {{256, 128, 64, 32, 32, 32}, 0.905, 0.646, 1, 1.3},
    {{256, 128, 128, 32, 64, 32}, 1.349, 0.946, 2, 2.2},
});

/// What splitting costs: another launch, and its traffic per million partial sums.
struct split_cost {
  double fixed, per_million;
};

constexpr split_cost tiled_split{1.75, 0.42}, cooperative_split{5.07, 2.0};

int64_t shared_bytes(const tiling& t, tile_family family) {
  if (family == tile_family::tiled)
    return int64_t{2} * (t.m + t.n) * (t.depth + 4) * 4;
  const auto operand = [&](int64_t lines) { return std::max(lines * (t.depth + 8), t.depth * (lines + 8)); };
  const int64_t stages = int64_t{t.threads} / 32 * 16 * 80; // of the sums, in A's place
  return std::max(2 * 2 * operand(t.m), stages) + 2 * 2 * operand(t.n);
}

/// Returns the predicted time of a tiling in µs, but for what a launch costs.
double predict(const tile_speed& s, const tiling& t, const split_cost& split, const product_size& size,
               const gpu_features& gpu) {
  const double groups = static_cast<double>(ceil_div(size.m, t.m) * ceil_div(size.n, t.n) * size.batches) * t.splits;
  const double busiest = std::ceil(groups / gpu.units); // groups of the multiprocessor that gets most
  const double steps = static_cast<double>(t.split_depth / t.depth);
  const auto round = [&](double together) {
    return together <= 0 ? 0 : s.fixed + steps * std::max(s.step, together * s.shared);
  };
  const double full = std::floor(busiest / s.resident);
  double time = full * round(s.resident) + round(busiest - full * s.resident);
  if (t.splits > 1)
    time += split.fixed + split.per_million * static_cast<double>(size.m * size.n * size.batches) * t.splits / 1e6;
  return time;
}

} // namespace

std::optional<tiling> choose_tiling(const product_size& size, tile_family family, bool may_split,
                                    const gpu_features& gpu) {
  std::optional<tiling> best;
  double best_time = 0;
  const bool matrices = family == tile_family::cooperative;
  for (const tile_speed& s : matrices ? std::span<const tile_speed>(cooperative) : std::span<const tile_speed>(tiled)) {
    if (s.tile.threads > gpu.max_group_size || shared_bytes(s.tile, family) > gpu.shared_bytes)
      continue;
    const int64_t steps = std::max<int64_t>(1, ceil_div(size.k, s.tile.depth));
    for (uint32_t splits = 1; splits <= (may_split ? max_splits : 1); ++splits) {
      const int64_t split_steps = ceil_div(steps, splits);
      if (splits > 1 && (split_steps < 2 || ceil_div(steps, split_steps) != splits))
        continue;
      tiling t = s.tile;
      t.splits = splits;
      t.split_depth = static_cast<uint32_t>(split_steps) * t.depth;
      const double time = predict(s, t, matrices ? cooperative_split : tiled_split, size, gpu);
      if (!best || time < best_time) {
        best = t;
        best_time = time;
      }
    }
  }
  return best;
}

shader::uvec2 divisor(int64_t d) {
  const auto value = static_cast<uint64_t>(std::max<int64_t>(d, 1));
  const auto shift = static_cast<uint32_t>(std::bit_width(value - 1));
  const uint64_t multiplier = ((uint64_t{1} << 32) * ((uint64_t{1} << shift) - value)) / value + 1;
  return {multiplier, shift};
}

} // namespace troupe

#include "cpu/panel_product.hpp"

#include "base/parallel.hpp"
#include "base/round_up.hpp"
#include "cpu/fast_functions.hpp"
#include "ops/pack.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace troupe {
namespace {

/// How far ahead weights are asked for: what memory takes to answer. Processors do not look beyond a page by themselves
/// (bert_base's products 203 ms on one thread, 185 with it).
constexpr int64_t floats_ahead = 1024;

struct tile_call {
  const float* x = nullptr; // of the first row
  int64_t step = 0;
  const int64_t* taps = nullptr;
  int64_t tap_count = 0, depth = 0;
  const float* panel = nullptr;
  const float *bias = nullptr, *residual = nullptr; // null for none
  float* y = nullptr;
  int64_t y_step = 0, columns = 0; // columns: of the panel, at most panel_columns
  value_limits limits{};
};

/// What is done to the sums of a tile: y = min(max(sum + residual, low), high); NaN stays.
struct tile_ending {
  const float* residual;
  float* y;
  int64_t step, columns;
  float_vector low, high;

  [[gnu::always_inline]] void finish(float_vector sum, int64_t row, int64_t column) const {
    const int64_t count = columns - column;
    if (residual)
      sum += load_part(residual + row * step + column, count);
    sum = sum < low ? low : sum;
    store_part(y + row * step + column, sum > high ? high : sum, count);
  }
};

/// Rows at most `panel_rows`. Four rows share a base address: processors have too few registers for one a row.
template <int Rows, int Vectors>
void run_tile(const tile_call& t) {
  constexpr int bases = (Rows + 3) / 4;
  float_vector sum[Rows][Vectors];
#pragma GCC unroll 2
  for (int v = 0; v < Vectors; ++v) {
    const float_vector bias =
        t.bias ? load_part(t.bias + v * float_lanes, t.columns - v * float_lanes) : float_vector{};
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
      sum[r][v] = bias;
  }
  const int64_t step = t.step, three_steps = 3 * step;
  const float* w = t.panel;
  for (int64_t tap = 0; tap < t.tap_count; ++tap) {
    const float* base[bases];
    for (int b = 0; b < bases; ++b)
      base[b] = t.x + t.taps[tap] + 4 * b * step;
    for (int64_t i = 0; i < t.depth; ++i, w += panel_columns) {
      float_vector weights[Vectors];
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) {
        weights[v] = reinterpret_cast<const float_vector*>(w)[v];
        __builtin_prefetch(w + v * float_lanes + floats_ahead);
      }
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        const float* const at = base[r / 4];
        const float x = r % 4 == 0 ? at[0] : r % 4 == 1 ? at[step] : r % 4 == 2 ? at[2 * step] : at[three_steps];
#pragma GCC unroll 2
        for (int v = 0; v < Vectors; ++v)
          sum[r][v] += x * weights[v];
      }
#pragma GCC unroll 4
      for (int b = 0; b < bases; ++b)
        ++base[b];
    }
  }
  const tile_ending end{
      t.residual, t.y, t.y_step, t.columns, float_vector{} + t.limits.low, float_vector{} + t.limits.high};
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v)
      end.finish(sum[r][v], r, v * float_lanes);
}

using tile_function = void (*)(const tile_call&);

template <int Vectors, size_t... Rows>
constexpr auto tiles_of(std::index_sequence<Rows...> /*from 0*/) {
  return std::array<tile_function, sizeof...(Rows)>{run_tile<static_cast<int>(Rows) + 1, Vectors>...};
}

/// By rows less one: tiles of a whole panel, and of its first half.
constexpr auto whole_tiles = tiles_of<2>(std::make_index_sequence<panel_rows>());
constexpr auto half_tiles = tiles_of<1>(std::make_index_sequence<panel_rows>());

constexpr float infinity = std::numeric_limits<float>::infinity();

} // namespace

value_limits take_limits(activation& act) {
  value_limits limits{-infinity, infinity};
  switch (act.code) {
    case scalar_code::same: break;
    case scalar_code::relu: limits.low = 0; break;
    case scalar_code::clip: limits = {act.alpha, act.beta}; break;
    default: return limits;
  }
  act = {};
  return limits;
}

panel_product::panel_product(weight_cache::handle packed, int64_t columns, std::vector<int64_t> taps, int64_t depth,
                             const activation& act, int64_t from)
    : packed_(std::move(packed)), panels_(packed_->data<float>() + from), columns_(columns), depth_(depth),
      taps_(std::move(taps)), after_(act), limits_(take_limits(after_)) {}

int64_t panel_product::panels() const {
  return ceil_div(columns_, panel_columns);
}

product_grid panel_product::grid_of(const product_sizes& s) const {
  constexpr int64_t group_floats = 64 * 1024; // of weights: half of a small core's second-level cache
  constexpr int64_t least_products = 500'000, tasks_of_thread = 4;
  const int64_t depth = std::ssize(taps_) * depth_, weights = panels() * depth * panel_columns;
  const int64_t products = s.units * s.unit_rows * weights, inputs = s.units * s.unit_floats;
  const int64_t threads = thread_count();
  const int64_t wanted = threads > 1 ? std::min(threads * tasks_of_thread, products / least_products) : 1;
  product_grid g{std::min(s.fewest_blocks, s.units), std::min(panels(), ceil_div(weights, group_floats))};
  while (g.tasks() < wanted && (g.row_blocks < s.units || g.panel_groups < panels())) {
    // A block more reads the weights once more, a group more reads the rows once more.
    const bool rows =
        g.panel_groups == panels() || (g.row_blocks < s.units && g.row_blocks * weights <= g.panel_groups * inputs);
    int64_t& grown = rows ? g.row_blocks : g.panel_groups;
    grown = std::min(2 * grown, rows ? s.units : panels());
  }
  return g;
}

void panel_product::run(const line& l, int64_t first, int64_t last, const float* bias) const {
  const int64_t panel_floats = std::ssize(taps_) * depth_ * panel_columns;
  const int64_t tiles = ceil_div(l.rows, panel_rows);
  tile_call t{.step = l.step,
              .taps = taps_.data(),
              .tap_count = std::ssize(taps_),
              .depth = depth_,
              .y_step = columns_,
              .limits = limits_};
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const int64_t row = l.rows * tile / tiles, rows = l.rows * (tile + 1) / tiles - row;
    t.x = l.x + row * l.step;
    for (int64_t p = first; p < last; ++p) {
      const int64_t column = p * panel_columns;
      t.columns = std::min(panel_columns, columns_ - column);
      t.panel = panels_ + p * panel_floats;
      t.y = l.y + row * columns_ + column;
      t.residual = l.residual ? l.residual + row * columns_ + column : nullptr;
      t.bias = bias ? bias + column : nullptr;
      (t.columns <= float_lanes ? half_tiles : whole_tiles)[static_cast<size_t>(rows - 1)](t);
    }
    if (after_.code != scalar_code::same) {
      const int64_t begin = first * panel_columns, count = std::min(columns_, last * panel_columns) - begin;
      for (int64_t r = row; r < row + rows; ++r) {
        float* const y = l.y + r * columns_ + begin;
        fast::activate(after_, y, y, count);
      }
    }
  }
}

weight_ptr pack_panels(const weight_ptr& w, int64_t depth, int64_t columns, bool transposed) {
  const int64_t panels = ceil_div(columns, panel_columns);
  const shape sizes{panels, depth, panel_columns};
  return transposed ? pack(w, {columns, depth}, {0, 1, 0}, sizes) : pack(w, {depth, columns}, {1, 0, 1}, sizes);
}

weight_ptr pack_filter_panels(const weight_ptr& w, const std::array<int64_t, 4>& f) {
  const int64_t panels = ceil_div(f[0], panel_columns);
  return pack(w, shape(f.begin(), f.end()), {0, 2, 3, 1, 0}, {panels, f[2], f[3], f[1], panel_columns});
}

} // namespace troupe

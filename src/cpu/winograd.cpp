#include "cpu/winograd.hpp"

#include "base/parallel.hpp"
#include "ops/evaluate.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace troupe::winograd {
namespace {

// GCC makes the widest vectors of these that the processor level has; they may begin anywhere.
using lanes = float __attribute__((vector_size(64), aligned(4), may_alias));
using bit_lanes = int32_t __attribute__((vector_size(64), aligned(4), may_alias));
static_assert(sizeof(lanes) == group * sizeof(float));

constexpr int32_t magnitude_bits =
    0x7fffffff; // all but the sign; those of infinities and NaN are more than any number's

template <int64_t Tile>
struct matrices;

/// Interpolation at 0, 1, −1 and infinity.
template <>
struct matrices<2> {
  static constexpr double g[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};

  /// Bᵀ times values that are `step` apart, in place.
  static void transform_inputs(lanes* d, int64_t step) {
    const lanes d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step];
    d[0] = d0 - d2;
    d[step] = d1 + d2;
    d[2 * step] = d2 - d1;
    d[3 * step] = d1 - d3;
  }

  /// Aᵀ times values that are `step` apart, to those that are `to_step` apart.
  static void transform_products(const lanes* m, int64_t step, lanes* y, int64_t to_step) {
    y[0] = m[0] + (m[step] + m[2 * step]);
    y[to_step] = (m[step] - m[2 * step]) - m[3 * step];
  }
};

/// Interpolation at 0, 1, −1, 2, −2 and infinity.
template <>
struct matrices<4> {
  static constexpr double g[6][3] = {{1. / 4, 0, 0},
                                     {-1. / 6, -1. / 6, -1. / 6},
                                     {-1. / 6, 1. / 6, -1. / 6},
                                     {1. / 24, 1. / 12, 1. / 6},
                                     {1. / 24, -1. / 12, 1. / 6},
                                     {0, 0, 1}};

  static void transform_inputs(lanes* d, int64_t step) {
    const lanes d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step], d4 = d[4 * step], d5 = d[5 * step];
    const lanes even = d4 - 4 * d2, odd = d3 - 4 * d1, outer_even = d4 - d2, outer_odd = 2 * (d3 - d1);
    d[0] = 4 * d0 - 5 * d2 + d4;
    d[step] = even + odd;
    d[2 * step] = even - odd;
    d[3 * step] = outer_even + outer_odd;
    d[4 * step] = outer_even - outer_odd;
    d[5 * step] = 4 * d1 - 5 * d3 + d5;
  }

  static void transform_products(const lanes* m, int64_t step, lanes* y, int64_t to_step) {
    const lanes sum = m[step] + m[2 * step], difference = m[step] - m[2 * step];
    const lanes outer_sum = m[3 * step] + m[4 * step], outer_difference = m[3 * step] - m[4 * step];
    y[0] = m[0] + sum + outer_sum;
    y[to_step] = difference + 2 * outer_difference;
    y[2 * to_step] = sum + 4 * outer_sum;
    y[3 * to_step] = difference + 8 * outer_difference + m[5 * step];
  }
};

/// U of `group` filters' 3 × 3 elements, the filters `from_step` apart in memory; their points are `step` apart.
template <int64_t Tile>
void transform_group(const float* filters, int64_t from_step, float* u, int64_t step) {
  constexpr int64_t patch = Tile + 2;
  const auto& g = matrices<Tile>::g;
  double f[9][group], rows[patch][3][group];
  for (int64_t k = 0; k < group; ++k)
    for (int64_t i = 0; i < 9; ++i)
      f[i][k] = filters[k * from_step + i];
  for (int64_t i = 0; i < patch; ++i)
    for (int64_t j = 0; j < 3; ++j)
      for (int64_t k = 0; k < group; ++k)
        rows[i][j][k] = g[i][0] * f[j][k] + g[i][1] * f[3 + j][k] + g[i][2] * f[6 + j][k];
  for (int64_t i = 0; i < patch; ++i)
    for (int64_t j = 0; j < patch; ++j)
      for (int64_t k = 0; k < group; ++k)
        u[(i * patch + j) * step + k] =
            static_cast<float>(rows[i][0][k] * g[j][0] + rows[i][1][k] * g[j][1] + rows[i][2][k] * g[j][2]);
}

template <int64_t Tile>
void infer_filters(infer_context& c) {
  const symbolic_shape& w = c.dims(0);
  c.set_output(0, dtype::float32, {dim(filtering<Tile>::points), w.at(1), w.at(0)});
}

template <int64_t Tile>
void filters_reference(kernel_context& c) {
  const const_view& w = c.input(0);
  const int64_t filters = w.dims[0], channels = w.dims[1];
  const auto* from = w.as<float>();
  auto* u = c.output(0).as<float>();
  parallel_for(channels, std::max<int64_t>(1, 1024 / filters), [&](int64_t begin, int64_t end) {
    for (int64_t channel = begin; channel < end; ++channel)
      for (int64_t f = 0; f < filters; f += group)
        transform_group<Tile>(from + (f * channels + channel) * 9, channels * 9, u + channel * filters + f,
                              channels * filters);
  });
}

/// Devices decide how weights are packed, files do not: these are not in the registry.
template <int64_t Tile>
constexpr op_def filters_op{.domain = "troupe",
                            .name = Tile == 2 ? "WinogradFilters2" : "WinogradFilters4",
                            .since = 1,
                            .infer = infer_filters<Tile>,
                            .reference = filters_reference<Tile>};

/// See `ending`. In place, and bits are seen by references: what a vector is returned in depends on the processor
/// level, of which GCC warns.
void limit(lanes& x, const ending& end) {
  x = x < end.low ? lanes{} + end.low : x;
  x = x > end.high ? lanes{} + end.high : x;
}

} // namespace

magnitudes magnitudes::operator+(const magnitudes& other) const {
  return {largest >= other.largest || std::isnan(largest) ? largest : other.largest, sum + other.sum};
}

float largest_of(std::span<const float> x) {
  int32_t largest = 0;
#pragma omp simd reduction(max : largest)
  for (size_t i = 0; i < x.size(); ++i)
    largest = std::max(largest, std::bit_cast<int32_t>(x[i]) & magnitude_bits);
  return std::bit_cast<float>(largest);
}

bool is_moderate(float largest) {
  return largest <= 1e15f;
}

bool are_even(const magnitudes& m, int64_t count) {
  return is_moderate(m.largest) && m.largest * static_cast<double>(count) <= 1000 * m.sum;
}

template <int64_t Tile>
weight_ptr filtering<Tile>::transform_filters(const weight_ptr& w) {
  return make_step(filters_op<Tile>, {}, {w}, dtype::float32, {points, w->dims.at(1), w->dims.at(0)});
}

template <int64_t Tile>
magnitudes filtering<Tile>::transform_patch(const patch_pixels& from, int64_t channels, float* v, int64_t step) {
  bit_lanes largest{};
  lanes sum{};
  for (int64_t c = 0; c < channels; c += group) {
    lanes d[points];
    for (int64_t i = 0; i < points; ++i) {
      d[i] = from.at[i] ? *reinterpret_cast<const lanes*>(from.at[i] + c) : lanes{};
      const bit_lanes bits = reinterpret_cast<const bit_lanes&>(d[i]) & magnitude_bits;
      largest = largest > bits ? largest : bits;
      sum += reinterpret_cast<const lanes&>(bits);
    }
    for (int64_t i = 0; i < patch; ++i)
      matrices<Tile>::transform_inputs(d + i, patch);
    for (int64_t i = 0; i < patch; ++i)
      matrices<Tile>::transform_inputs(d + i * patch, 1);
    for (int64_t i = 0; i < points; ++i)
      *reinterpret_cast<lanes*>(v + i * step + c) = d[i];
  }
  magnitudes all;
  for (int64_t i = 0; i < group; ++i)
    all = all + magnitudes{std::bit_cast<float>(static_cast<int32_t>(largest[i])), sum[i]};
  return all;
}

template <int64_t Tile>
void filtering<Tile>::transform_tile(const float* m, int64_t step, int64_t filters, const ending& end,
                                     const tile_pixels& to) {
  for (int64_t f = 0; f < filters; f += group) {
    lanes products[points], rows[tile * patch], y[tile * tile];
    for (int64_t i = 0; i < points; ++i)
      products[i] = *reinterpret_cast<const lanes*>(m + i * step + f);
    for (int64_t i = 0; i < patch; ++i)
      matrices<Tile>::transform_products(products + i, patch, rows + i, patch);
    for (int64_t i = 0; i < tile; ++i)
      matrices<Tile>::transform_products(rows + i * patch, 1, y + i * tile, 1);
    const lanes bias = end.bias ? *reinterpret_cast<const lanes*>(end.bias + f) : lanes{};
    for (int64_t i = 0; i < tile * tile; ++i)
      if (to.at[i]) {
        lanes sum = y[i] + bias;
        if (end.has_residual)
          sum += *reinterpret_cast<const lanes*>(to.added[i] + f);
        limit(sum, end);
        *reinterpret_cast<lanes*>(to.at[i] + f) = sum;
      }
  }
}

template struct filtering<2>;
template struct filtering<4>;

} // namespace troupe::winograd

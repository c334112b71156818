// 3 × 3 convolutions of channels-last floats by minimal filtering (winograd.hpp): Y = act(conv(X, W) + B + residual),
// for constant weights and many channels, in about half of the time of a direct one. Patches are transformed,
// multiplied (panel_product.hpp) and transformed back, one block of tiles after the other, so that products stay in the
// cache.
//
// Results are within 2e-6 of the exact ones (relative L2; direct sums within 2e-7). A run whose elements are not even
// enough for that (`are_even`) is done by the direct kernel, which is made then.
#include "base/parallel.hpp"
#include "base/round_up.hpp"
#include "cpu/conv_call.hpp"
#include "cpu/kernels.hpp"
#include "cpu/panel_product.hpp"
#include "cpu/winograd.hpp"
#include "ops/pack.hpp"
#include "ops/window.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troupe {
namespace winograd {
namespace {

/// What a block's patches and products should take: cores' caches have them.
constexpr int64_t block_bytes = int64_t{4} << 20;
/// Floats a thread should transform, and tiles of which it computes a point at once.
constexpr int64_t floats_each = 32 * 1024, rows_at_once = 4 * panel_rows;

struct conv_sizes {
  int64_t images, channels, filters;
  window_axis rows, columns;

  int64_t tile_rows(int64_t tile) const { return ceil_div(rows.out, tile); }
  int64_t tile_columns(int64_t tile) const { return ceil_div(columns.out, tile); }
  int64_t tiles(int64_t tile) const { return images * tile_rows(tile) * tile_columns(tile); }
};

/// The image of a tile, and its first output.
struct tile_place {
  int64_t image, row, column;
};

tile_place place_of(const conv_sizes& s, int64_t tile, int64_t number) {
  const int64_t across = s.tile_columns(tile), down = s.tile_rows(tile), row = number / across;
  return {row / down, row % down * tile, number % across * tile};
}

template <int64_t Tile>
typename filtering<Tile>::patch_pixels patch_at(const conv_sizes& s, const float* x, const tile_place& place) {
  constexpr int64_t patch = filtering<Tile>::patch;
  typename filtering<Tile>::patch_pixels p;
  for (int64_t i = 0; i < patch; ++i)
    for (int64_t j = 0; j < patch; ++j) {
      const int64_t row = s.rows.start(place.row) + i, column = s.columns.start(place.column) + j;
      const bool inside = row >= 0 && row < s.rows.in && column >= 0 && column < s.columns.in;
      p.at[i * patch + j] =
          inside ? x + ((place.image * s.rows.in + row) * s.columns.in + column) * s.channels : nullptr;
    }
  return p;
}

template <int64_t Tile>
typename filtering<Tile>::tile_pixels tile_at(const conv_sizes& s, float* y, const float* residual,
                                              const tile_place& place) {
  typename filtering<Tile>::tile_pixels p;
  for (int64_t i = 0; i < Tile; ++i)
    for (int64_t j = 0; j < Tile; ++j) {
      const int64_t row = place.row + i, column = place.column + j;
      const int64_t at = ((place.image * s.rows.out + row) * s.columns.out + column) * s.filters;
      const bool wanted = row < s.rows.out && column < s.columns.out;
      p.at[i * Tile + j] = wanted ? y + at : nullptr;
      p.added[i * Tile + j] = wanted && residual ? residual + at : nullptr;
    }
  return p;
}

/// The limits of an activation that has no more; nullopt for others.
std::optional<ending> ending_of(activation act) {
  const value_limits limits = take_limits(act);
  if (act.code != scalar_code::same)
    return std::nullopt;
  return ending{nullptr, false, limits.low, limits.high};
}

template <int64_t Tile>
class winograd_conv_kernel final : public kernel {
public:
  winograd_conv_kernel(const kernel_request& r, const conv_sizes& s, const ending& end)
      : request_(r), sizes_(s), end_(end) {
    const int64_t most = std::max<int64_t>(1, block_bytes / (points * (s.channels + s.filters) * bytes_of_float));
    block_ = ceil_div(s.tiles(Tile), ceil_div(s.tiles(Tile), most));
    const int64_t panels = ceil_div(s.filters, panel_columns);
    weights_ =
        r.resources.weights.get(pack(form::transform_filters(r.inputs[1].constant), {points, s.channels, s.filters},
                                     {0, 2, 1, 2}, {points, panels, s.channels, panel_columns}));
    for (int64_t p = 0; p < points; ++p)
      products_.emplace_back(weights_, s.filters, std::vector<int64_t>{0}, s.channels, activation{},
                             p * panels * s.channels * panel_columns);
    products_at_ = round_up(points * block_ * s.channels * bytes_of_float, alignment);
    r.resources.scratch.reserve(products_at_ + points * block_ * s.filters * bytes_of_float);
  }

  /// Whether the weights allow it: each output has all of its filter's, so that they need not be even, only finite in
  /// sums.
  bool is_safe() const {
    return is_moderate(largest_of(std::span(weights_->data<float>(), static_cast<size_t>(weights_->size()))));
  }

  bool reads(size_t i) const override { return i != 1; }

  void run(const kernel_run& r) override {
    auto* scratch = static_cast<std::byte*>(request_.resources.scratch.data());
    auto *v = reinterpret_cast<float*>(scratch), *m = reinterpret_cast<float*>(scratch + products_at_);
    end_.bias = request_.has_input(2) ? r.input<float>(2) : nullptr;
    magnitudes found;
    for (int64_t first = 0; first < sizes_.tiles(Tile); first += block_) {
      const int64_t count = std::min(block_, sizes_.tiles(Tile) - first);
      found = found + transform_in(r.input<float>(0), first, count, v);
      const int64_t seen = (first + count) * points * sizes_.channels;
      if (first + count == sizes_.tiles(Tile) && !are_even(found, seen))
        return run_directly(r);
      multiply(v, count, m);
      transform_out(m, first, count, end_.has_residual ? r.input<float>(3) : nullptr, r.output<float>(0));
    }
  }

private:
  using form = filtering<Tile>;
  static constexpr int64_t points = form::points, bytes_of_float = sizeof(float), alignment = 64;

  /// Returns what the patches have, added up in the order of the tiles.
  magnitudes transform_in(const float* x, int64_t first, int64_t count, float* v) {
    patches_.resize(static_cast<size_t>(count));
    parallel_for(count, grain(sizes_.channels), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        patches_[static_cast<size_t>(i)] =
            form::transform_patch(patch_at<Tile>(sizes_, x, place_of(sizes_, Tile, first + i)), sizes_.channels,
                                  v + i * sizes_.channels, block_ * sizes_.channels);
    });
    return std::accumulate(patches_.begin(), patches_.end(), magnitudes());
  }

  /// The products of the first `count` tiles of a block.
  void multiply(const float* v, int64_t count, float* m) const {
    const int64_t parts = ceil_div(count, rows_at_once);
    parallel_for(points * parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t point = i / parts, row = count * (i % parts) / parts, last = count * (i % parts + 1) / parts;
        const panel_product& product = products_[static_cast<size_t>(point)];
        product.run({.x = v + (point * block_ + row) * sizes_.channels,
                     .step = sizes_.channels,
                     .rows = last - row,
                     .residual = nullptr,
                     .y = m + (point * block_ + row) * sizes_.filters},
                    0, product.panels(), nullptr);
      }
    });
  }

  void transform_out(const float* m, int64_t first, int64_t count, const float* residual, float* y) const {
    parallel_for(count, grain(sizes_.filters), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        form::transform_tile(m + i * sizes_.filters, block_ * sizes_.filters, sizes_.filters, end_,
                             tile_at<Tile>(sizes_, y, residual, place_of(sizes_, Tile, first + i)));
    });
  }

  static int64_t grain(int64_t channels) { return std::max<int64_t>(1, floats_each / (points * channels)); }

  void run_directly(const kernel_run& r) {
    if (!direct_)
      direct_ = make_panel_conv(request_);
    expects(direct_ != nullptr, "there is no direct convolution");
    direct_->run(r);
  }

  const kernel_request request_;
  const conv_sizes sizes_;
  ending end_;
  int64_t block_;                       // tiles
  std::vector<magnitudes> patches_;     // of a block
  std::vector<panel_product> products_; // by point
  weight_cache::handle weights_;
  int64_t products_at_ = 0; // in the scratch buffer, after the patches
  kernel_ptr direct_;
};

/// Returns the tile by which it is faster than a direct convolution; nullopt if it is not. Transformed weights are 4 or
/// 16 / 9 times as many: few tiles do not pay for them (512 channels of 7 × 7 take 1.11 instead of 0.97 ms), and models
/// of large ones would not find room.
std::optional<int64_t> best_tile(const conv_sizes& s) {
  constexpr int64_t fewest_tiles = 32, fewest_products = 5'000'000, most_weights = int64_t{4} << 20;
  const int64_t filter_channels = s.channels * s.filters;
  if (s.filters < 2 * group || 9 * filter_channels * s.images * s.rows.out * s.columns.out < fewest_products)
    return std::nullopt;
  for (const int64_t tile : {4, 2})
    if (s.tiles(tile) >= fewest_tiles && (tile + 2) * (tile + 2) * filter_channels <= most_weights)
      return tile;
  return std::nullopt;
}

template <int64_t Tile>
kernel_ptr make(const kernel_request& r, const conv_sizes& s, const ending& end) {
  auto made = std::make_unique<winograd_conv_kernel<Tile>>(r, s, end);
  return made->is_safe() ? std::move(made) : nullptr;
}

bool is_3x3(const window_spec& spec) {
  const auto all = [](const std::vector<int64_t>& v, int64_t n) {
    return std::ranges::all_of(v, [n](int64_t e) { return e == n; });
  };
  return spec.rank() == 2 && all(spec.kernel, 3) && all(spec.strides, 1) && all(spec.dilations, 1);
}

} // namespace
} // namespace winograd

kernel_ptr make_winograd_conv(const kernel_request& r) {
  const operand &x = r.inputs[0], &w = r.inputs[1];
  if (x.dims.size() != 4 || !is_channels_last_conv(r))
    return nullptr;
  const window_spec spec = parse_window(r.call.attrs, shape(w.dims.begin() + 2, w.dims.end()));
  auto end = winograd::ending_of(parse_activation(r.call.attrs));
  if (!winograd::is_3x3(spec) || x.dims[1] % winograd::group != 0 || w.dims[0] % winograd::group != 0 || !end)
    return nullptr;
  end->has_residual = r.has_input(3);
  const auto axes = axes_of_conv(r);
  if (!axes)
    return nullptr;
  const winograd::conv_sizes s{x.dims[0], x.dims[1], w.dims[0], (*axes)[1], (*axes)[2]};
  const auto tile = winograd::best_tile(s);
  if (!tile)
    return nullptr;
  return *tile == 4 ? winograd::make<4>(r, s, *end) : winograd::make<2>(r, s, *end);
}

} // namespace troupe

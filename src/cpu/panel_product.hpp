// Products of rows of floats by packed weights, of which matrix products and convolutions are made:
//
//   y[row][column] = act(Σ_tap Σ_i x[row + tap][i] · w[tap][i][column] + bias[column] + residual[row][column])
//
// A *panel* is the weights of a few neighbouring columns, [taps · depth, panel_columns], zero beyond the last column. A
// *tile* is a few rows by a panel, whose sums stay in registers while x and the panel are read once, in the order of
// memory (as in Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008). A *line* is rows
// that follow each other at a constant step: rows of a matrix, or pixels of a row of an image. Each sum adds in the
// same order whatever the tiles and threads are, so that results do not depend on them.
#pragma once

#include "cpu/float_vector.hpp"
#include "cpu/weight_cache.hpp"
#include "ops/activation.hpp"
#include "tensor/elements.hpp"

#include <array>
#include <vector>

namespace troupe {

/// Columns of a panel.
inline constexpr int64_t panel_columns = 2 * float_lanes;
/// Rows of the largest tile: its sums take most of a processor's registers, 32 with AVX-512, else 16.
inline constexpr int64_t panel_rows = float_lanes == 16 ? 14 : 6;

/// The limits of activations that have no more, y = min(max(x, low), high); NaN stays.
struct value_limits {
  float low, high;
};

/// Returns the limits, and sets `act` to none, if it has no more than limits; else infinities, and leaves `act`.
value_limits take_limits(activation& act);

/// How a product is cut for threads: `row_blocks` × `panel_groups` tasks.
struct product_grid {
  int64_t row_blocks, panel_groups;
  int64_t tasks() const { return row_blocks * panel_groups; }
};

/// Sizes of a product, in floats, for `grid_of`. A unit is what row blocks are made of: a tile's rows, or image rows.
struct product_sizes {
  int64_t units, unit_rows, unit_floats; // unit_floats: of x
  int64_t fewest_blocks = 1;
};

/// A product by one packed weight. Thread-safe.
class panel_product {
public:
  /// Rows to compute. `residual` may be null.
  struct line {
    const float* x;
    int64_t step; // floats from one row of x to the next
    int64_t rows;
    const float* residual;
    float* y; // rows of y and residual are `columns` floats apart
  };

  panel_product() = default;
  /// `packed` has [panels, taps.size() · depth, panel_columns] from its element `from` on; `taps` says where in x each
  /// tap begins, from the row on.
  panel_product(weight_cache::handle packed, int64_t columns, std::vector<int64_t> taps, int64_t depth,
                const activation& act, int64_t from = 0);

  int64_t panels() const;
  /// Returns a cut for the threads of the calling thread.
  product_grid grid_of(const product_sizes& sizes) const;

  /// Computes the columns of panels [first, last) of a line. `bias` has `columns` floats, or is null.
  void run(const line& l, int64_t first, int64_t last, const float* bias) const;

private:
  weight_cache::handle packed_;
  const float* panels_ = nullptr; // in it
  int64_t columns_ = 0, depth_ = 0;
  std::vector<int64_t> taps_;
  activation after_; // what is done to finished lines
  value_limits limits_{};
};

/// Returns the panels of a matrix [depth, columns], or [columns, depth] if `transposed`. Nothing is computed yet.
weight_ptr pack_panels(const weight_ptr& w, int64_t depth, int64_t columns, bool transposed);

/// Returns the panels of filters [columns, channels, window rows, window columns], the taps row by row.
weight_ptr pack_filter_panels(const weight_ptr& w, const std::array<int64_t, 4>& filters);

} // namespace troupe

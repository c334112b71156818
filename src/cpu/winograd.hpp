// Winograd's minimal filtering F(t × t, 3 × 3): a tile of t × t outputs of a 3 × 3 convolution from a patch of (t + 2)²
// inputs with as many products a channel, 36 instead of 144 for t = 4, 16 instead of 36 for t = 2 (Lavin and Gray,
// "Fast Algorithms for Convolutional Neural Networks", 2015).
//
//   Y = Aᵀ (U ⊙ V) A,  U = G g Gᵀ,  V = Bᵀ d B
//   g: a filter, d: a patch, Y: its tile; ⊙: by point, summed over the channels
//
// So a convolution is one matrix product for each point of a patch: [tiles × channels] · [channels × filters].
#pragma once

#include "graph/weight.hpp"

#include <span>

namespace troupe::winograd {

/// Channels and filters that are transformed at once; there are multiples of it.
inline constexpr int64_t group = 16;

/// What follows a convolution: y = min(max(sum + bias + residual, low), high); NaN stays.
struct ending {
  const float* bias; // of each filter; null for none
  bool has_residual;
  float low, high;
};

/// The largest of some elements' magnitudes, NaN if one of them is, and their sum.
struct magnitudes {
  float largest = 0;
  double sum = 0;

  magnitudes operator+(const magnitudes& other) const;
};

/// Returns the largest magnitude, NaN or infinity if one is not finite.
float largest_of(std::span<const float> x);

/// Returns whether sums of products of two such elements are finite.
bool is_moderate(float largest);

/// Returns whether tiles of `count` such elements are exact enough. All of a tile's outputs are made of all of its
/// patch: what is infinite or NaN in one pixel would be in outputs that do not see it, and a pixel that is 1,000 times
/// as large as others adds an error of 1e-4 of these.
bool are_even(const magnitudes& m, int64_t count);

/// Tiles of Tile × Tile outputs; Tile is 2 or 4.
template <int64_t Tile>
struct filtering {
  /// Along an axis; points of a patch.
  static constexpr int64_t tile = Tile, patch = Tile + 2, points = patch * patch;

  /// A patch's rows and columns of pixels, each its channels' floats; null where it is beyond the image, which is 0
  /// there.
  struct patch_pixels {
    const float* at[points];
  };

  /// A tile's pixels likewise; null: not wanted.
  struct tile_pixels {
    float* at[tile * tile];
    const float* added[tile * tile]; // where a residual is, if there is one
  };

  /// Returns the weights [filters, channels, 3, 3] as U, [points, channels, filters], rounded from doubles. Nothing is
  /// computed yet.
  static weight_ptr transform_filters(const weight_ptr& w);

  /// Writes V of one patch: point p of channel c to v[p · step + c]. Returns what the patch has.
  static magnitudes transform_patch(const patch_pixels& from, int64_t channels, float* v, int64_t step);

  /// Writes one tile's outputs from its products: point p of filter f is m[p · step + f].
  static void transform_tile(const float* m, int64_t step, int64_t filters, const ending& end, const tile_pixels& to);
};

extern template struct filtering<2>;
extern template struct filtering<4>;

} // namespace troupe::winograd

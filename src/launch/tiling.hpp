// Which tile a matrix product is computed in on a GPU, and into how many ranges its depth is split (shaders/gemm.glsl).
#pragma once

#include "launch/launch.hpp"
#include "launch/parameters.hpp"

namespace troupe {

/// A tile of C that a group computes, and the depth range of one split.
struct tiling {
  uint32_t threads, m, n, depth;
  uint32_t rows, columns; // of an invocation (tiled) or of a subgroup (cooperative)
  uint32_t splits = 1;
  uint32_t split_depth = 0; // a multiple of `depth`
  double time = 0;          // predicted, in µs, but for what a launch costs
  /// Whether groups ask for all their memory at once; nullopt: if they are few for the device (`tile_flags`).
  std::optional<bool> asks_first = std::nullopt;

  /// Slices of a group that share the depths of a tile of scalar arithmetic (shaders/gemm_tiled.glsl).
  uint32_t slices() const { return threads / (m / rows * (n / columns)); }
  /// Returns it for people: "64x64x32/256", with "*3" for three splits.
  std::string name() const;
  /// Returns the kernels' first specialisation constants.
  std::vector<uint32_t> constants() const { return {threads, m, n, depth, rows, columns}; }
};

/// How many constants a tiling has.
inline constexpr size_t tiling_constants = 6;

/// What a product is, as far as its tiling is concerned.
struct product_size {
  int64_t m = 0, n = 0, k = 0, batches = 1;
  bool gathers = false; // an operand is read element by element
  bool split = false;   // nothing but what is split will do
  bool slices = false;  // there are kernels of scalar arithmetic with slices, and they are worth trying
};

/// Which kernel family a tile is for: scalar arithmetic; matrices of subgroups of float16, of float32 in pieces, or of
/// bytes (whose depths count as half as many); matrices of groups.
enum class tile_family : uint8_t { tiled, cooperative, cooperative_floats, cooperative_bytes, matrices };

/// Returns how many elements the kernels of a family read and write at once.
int64_t product_width(tile_family family);

/// Returns the tiling that should be fastest, by a model of groups, waves and memory latency; nullopt if no tile fits
/// the device. `may_split` says whether partial sums can be added afterwards.
std::optional<tiling> choose_tiling(const product_size& size, tile_family family, bool may_split,
                                    const gpu_features& gpu);

/// Returns that tiling (of what has to be split, also the best of the tile that it would take if it had not), then, if
/// all ways are wanted, others whose predicted time is at most `hopeless_time` times as long, the fastest first: of
/// each tile those splits that come out best. If every way is wanted, however slow, each tile is there whole, too, and
/// for few groups as well as for many, unless `only` names some by their constants. None if no tile fits the device.
std::vector<tiling> list_tilings(const product_size& size, tile_family family, bool may_split, const gpu_features& gpu,
                                 way_range ways, std::span<const std::vector<uint32_t>> only = {});

/// Returns the flags that a tile's kernel has besides its product's: what groups' third numbers count, and whether the
/// groups are few for the device.
uint32_t tile_flags(const tiling& t, const std::array<uint32_t, 3>& groups, int64_t batches, const gpu_features& gpu);

/// Returns how many column tiles of a float16 product groups go through together, for the kernel by matrices of groups;
/// 0: one, all rows of it.
uint32_t column_band(const product_size& size);

/// A tile whose predicted time is this many times the best one's is not worth measuring.
inline constexpr double hopeless_time = 4;

/// Returns multiplier and shift for the shaders' `divide`: n / d for n < 2^31 and d ≥ 1.
shader::uvec2 divisor(int64_t d);

} // namespace troupe

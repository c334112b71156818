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

  /// Returns the kernels' first specialisation constants.
  std::vector<uint32_t> constants() const { return {threads, m, n, depth, rows, columns}; }
};

/// What a product is, as far as its tiling is concerned.
struct product_size {
  int64_t m = 0, n = 0, k = 0, batches = 1;
  bool gathers = false; // an operand is read element by element
};

/// Which kernel family a tile is for: scalar arithmetic, matrices of subgroups, matrices of groups.
enum class tile_family : uint8_t { tiled, cooperative, matrices };

/// Returns the tiling that should be fastest, by a model of groups, waves and memory latency; nullopt if no tile fits the
/// device. `may_split` says whether partial sums can be added afterwards.
std::optional<tiling> choose_tiling(const product_size& size, tile_family family, bool may_split,
                                    const gpu_features& gpu);

/// Returns multiplier and shift for the shaders' `divide`: n / d for n < 2^31 and d ≥ 1.
shader::uvec2 divisor(int64_t d);

} // namespace troupe

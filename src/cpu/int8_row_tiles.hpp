// Rows, or pixels, in tiles whose sizes kernels know when they are compiled.
#pragma once

#include <cstdint>

namespace troupe::int8 {

/// Calls `tile.operator()<Count>(first)` for tiles of `Most` rows, and once for those that are left.
template <int64_t Most, class Tile>
void for_row_tiles(int64_t rows, const Tile& tile, int64_t first = 0) {
  for (; first + Most <= rows; first += Most)
    tile.template operator()<Most>(first);
  if constexpr (Most > 1)
    for_row_tiles<Most - 1>(rows, tile, first);
}

} // namespace troupe::int8

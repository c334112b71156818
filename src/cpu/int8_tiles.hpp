// Walks a product of bytes in tiles of rows and panels of columns that stay in a core's cache, on several threads.
#pragma once

#include "base/parallel.hpp"
#include "cpu/int8_finish.hpp"
#include "cpu/int8_product.hpp"

#include <algorithm>

namespace troupe::int8 {

/// Blocks of columns whose sums are computed at a time, and bytes of A that a tile has.
inline constexpr int64_t panel_blocks = 16, tile_bytes = 64 * 1024;

/// Rows of A, gathered or in place.
struct row_range {
  const uint8_t* data;
  int64_t step;
};

/// Returns how many of `rows` rows of `quads` quads a tile should have: a multiple of 6, if that leaves each thread some.
inline int64_t rows_of_tile(int64_t rows, int64_t quads) {
  const int64_t cached = std::clamp<int64_t>(tile_bytes / (quads * quad), 6, 96);
  const int64_t share = (rows + thread_count() - 1) / thread_count();
  return (std::min(cached, std::max<int64_t>(share, 1)) + 5) / 6 * 6;
}

/// Computes `rows` rows of A · `b` (`columns` columns, the first of which is `first_column` of `end`). `gather(first, count)` returns rows
/// of A; the results begin at `y`, their rows are `y_step` bytes apart.
template <class Gather>
void multiply_tiles(int64_t rows, int64_t columns, int64_t first_column, const panel& b, const finish& end,
                    Gather gather, std::byte* y, int64_t y_step) {
  const int64_t tile = rows_of_tile(rows, b.quads), tiles = (rows + tile - 1) / tile;
  const int64_t panels = (b.blocks + panel_blocks - 1) / panel_blocks;
  const int64_t work = rows * columns * b.quads * quad / std::max<int64_t>(1, tiles * panels);
  const int64_t grain = std::max<int64_t>(1, 200'000 / std::max<int64_t>(1, work));
  const product_function multiply = best().multiply;
  parallel_for(tiles * panels, grain, [&](int64_t begin, int64_t stop) {
    thread_local std::vector<int32_t> sums, row_sums;
    sums.resize(std::max<size_t>(sums.size(), static_cast<size_t>(tile * panel_blocks * block_columns)));
    row_sums.resize(std::max<size_t>(row_sums.size(), static_cast<size_t>(tile)));
    row_range a{};
    for (int64_t item = begin; item < stop; ++item) {
      const int64_t row = item / panels * tile, count = std::min(tile, rows - row);
      const int64_t block = item % panels * panel_blocks, blocks = std::min(panel_blocks, b.blocks - block);
      if (item == begin || block == 0) {
        a = gather(row, count);
        for (int64_t i = 0; end.wants_row_sums() && i < count; ++i)
          row_sums[static_cast<size_t>(i)] = sum_of(a.data + i * a.step, end.depth());
      }
      const int64_t width = blocks * block_columns, column = block * block_columns;
      multiply(a.data, a.step, count, {b.data + block * b.quads * block_columns * quad, b.quads, blocks}, sums.data(),
               width);
      end.apply({sums.data(), width, count, row_sums.data(), y + row * y_step + column * end.bytes_each(), y_step},
                first_column + column, std::min(width, columns - column));
    }
  });
}

} // namespace troupe::int8

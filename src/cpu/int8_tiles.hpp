// Walks a product of bytes in tiles of rows and panels of columns that stay in a core's cache, on several threads.
#pragma once

#include "base/parallel.hpp"
#include "cpu/int8_finish.hpp"
#include "cpu/int8_product.hpp"

#include <algorithm>

namespace troupe::int8 {

/// Rows of A, gathered or in place.
struct row_range {
  const uint8_t* data;
  int64_t step;
};

/// A · `b` (`columns` columns, the first of which is `first_column` of `end`). `gather(first, count)` returns rows of
/// A; the results begin at `y`, their rows are `y_step` bytes apart.
template <class Gather>
class tiled_product {
public:
  tiled_product(int64_t rows, int64_t columns, int64_t first_column, const panel& b, const finish& end, Gather gather,
                std::byte* y, int64_t y_step)
      : rows_(rows), columns_(columns), first_column_(first_column), b_(b), end_(end), gather_(gather), y_(y),
        y_step_(y_step), to_bytes_(end.is_bytes() ? best().multiply_to_bytes : nullptr) {}

  /// Threads share the rows, or the columns if these are more.
  void run() const {
    const int64_t groups = (rows_ + group_rows - 1) / group_rows;
    const bool by_columns = b_.blocks > groups;
    const int64_t items = by_columns ? b_.blocks : groups;
    const int64_t work = rows_ * columns_ * b_.quads * quad / items;
    parallel_for(items, std::max<int64_t>(1, least_work / std::max<int64_t>(1, work)), [&](int64_t begin, int64_t end) {
      if (by_columns)
        run_part(0, rows_, begin, end);
      else
        run_part(begin * group_rows, std::min(rows_, end * group_rows), 0, b_.blocks);
    });
  }

private:
  /// Rows that a kernel takes at once, blocks of columns whose sums are computed at a time, bytes of A that a tile has,
  /// and products that are worth a thread.
  static constexpr int64_t group_rows = 6, panel_blocks = 16, tile_bytes = 64 * 1024, least_work = 400'000;

  void run_part(int64_t first_row, int64_t last_row, int64_t first_block, int64_t last_block) const {
    const int64_t tile = std::clamp<int64_t>(tile_bytes / (b_.quads * quad), 6, 96) / group_rows * group_rows;
    const int64_t blocks = last_block - first_block, panels = (blocks + panel_blocks - 1) / panel_blocks;
    const int64_t width = (blocks + panels - 1) / panels;
    for (int64_t row = first_row; row < last_row; row += tile) {
      const int64_t count = std::min(tile, last_row - row);
      const row_range a = gather_(row, count);
      for (int64_t block = first_block; block < last_block; block += width)
        run_tile(a, row, count, block, std::min(width, last_block - block));
    }
  }

  void run_tile(const row_range& a, int64_t row, int64_t count, int64_t block, int64_t blocks) const {
    const panel b{b_.data + block * b_.quads * block_columns * quad, b_.quads, blocks};
    const int64_t column = block * block_columns, width = blocks * block_columns;
    const int64_t columns = std::min(width, columns_ - column);
    std::byte* y = y_ + row * y_step_ + column * end_.bytes_each();
    if (to_bytes_)
      return to_bytes_(a.data, a.step, count, b, end_.bytes(first_column_ + column), columns,
                       reinterpret_cast<uint8_t*>(y), y_step_);
    thread_local std::vector<int32_t> sums, row_sums;
    sums.resize(std::max(sums.size(), static_cast<size_t>(count * width)));
    row_sums.resize(std::max(row_sums.size(), static_cast<size_t>(count)));
    for (int64_t i = 0; end_.wants_row_sums() && i < count; ++i)
      row_sums[static_cast<size_t>(i)] = sum_of(a.data + i * a.step, end_.depth());
    best().multiply(a.data, a.step, count, b, sums.data(), width);
    end_.apply({sums.data(), width, count, row_sums.data(), y, y_step_}, first_column_ + column, columns);
  }

  const int64_t rows_, columns_, first_column_;
  const panel b_;
  const finish& end_;
  const Gather gather_;
  std::byte* const y_;
  const int64_t y_step_;
  const product_to_bytes_function to_bytes_; // null: sums are finished apart
};

} // namespace troupe::int8

// The copies of caches' rows between orders, done here as the kernel does them.
#include "support/catch.hpp"
#include "vulkan/cache_rows.hpp"

#include <numeric>

using namespace troupe;
using namespace troupe::vulkan;

namespace {

/// As place_of in shaders/copy_rows.comp.
uint32_t place_of(uint32_t index, shader::uvec4 size, shader::uvec4 steps) {
  const uint32_t word = index % size.x, head = index / size.x % size.y, batch = index / size.x / size.y % size.z,
                 row = index / size.x / size.y / size.z;
  return steps.x + word + head * steps.y + batch * steps.z + row * steps.w;
}

std::vector<int> copied(const row_steps& s, const std::vector<int>& from, size_t to) {
  std::vector<int> out(to, -1);
  for (uint32_t i = 0; i < s.words(); ++i)
    out.at(place_of(i, s.sizes, s.to)) = from.at(place_of(i, s.sizes, s.from));
  return out;
}

} // namespace

TEST_CASE("a value is copied as one row", "[vulkan]") {
  const row_steps row = one_row(3 * row_word_bytes);
  CHECK(row.words() == 3);
  CHECK(copied(row, {7, 8, 9}, 3) == std::vector<int>{7, 8, 9});
}

TEST_CASE("rows of caches go from one order to another and back", "[vulkan]") {
  const shape dims{2, 3, 5, 8}; // rows of two words of 16 bytes
  std::vector<int> values(2 * 3 * 5 * 2);
  std::iota(values.begin(), values.end(), 0);
  const row_steps there = reorder_rows(dtype::float32, dims, cache_order::usual, cache_order::rows_first),
                  back = reorder_rows(dtype::float32, dims, cache_order::rows_first, cache_order::usual),
                  same = reorder_rows(dtype::float32, dims, cache_order::rows_first, cache_order::rows_first);
  CHECK(there.words() == 60);
  CHECK(position_bytes(dtype::float32, dims) == 2 * 3 * 2 * 16);
  const std::vector<int> first = copied(there, values, 60);
  for (int b = 0; b < 2; ++b)
    for (int h = 0; h < 3; ++h)
      for (int t = 0; t < 5; ++t)
        for (int w = 0; w < 2; ++w)
          CHECK(first[((t * 2 + b) * 3 + h) * 2 + w] == ((b * 3 + h) * 5 + t) * 2 + w);
  CHECK(copied(back, first, 60) == values);
  CHECK(copied(same, first, 60) == first);
}

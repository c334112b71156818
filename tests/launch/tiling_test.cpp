// Which tile a product is computed in, and which parameters its kernel gets.
#include "launch/tiling.hpp"
#include "support/catch.hpp"
#include "support/fabricated_gpu.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

gpu_features gpu_with_matrices() {
  gpu_features gpu = h100_like();
  gpu.cooperative_matrix = true;
  return gpu;
}

} // namespace

TEST_CASE("Division by multiplication is exact", "[ops]") {
  for (const uint64_t d : {1, 2, 3, 5, 7, 9, 49, 100, 147, 1000, 65535, 65536, 1 << 30}) {
    const auto [multiplier, shift] = divisor(static_cast<int64_t>(d));
    for (const uint64_t n : {uint64_t{0}, uint64_t{1}, d - 1, d, d + 1, 3 * d - 1, 3 * d, (uint64_t{1} << 31) - 1})
      if (n < uint64_t{1} << 31)
        CHECK(((n * multiplier >> 32) + n) >> shift == n / d);
  }
}

TEST_CASE("Tiles shrink and depth is split if a device would stay empty", "[ops]") {
  const gpu_features gpu = gpu_with_matrices();
  for (const auto family : {tile_family::tiled, tile_family::cooperative, tile_family::cooperative_floats}) {
    const auto large = choose_tiling({4096, 4096, 4096}, family, true, gpu);
    REQUIRE(large);
    CHECK(large->m >= 128);
    CHECK(large->n >= 128);
    CHECK(large->splits == 1);
    const auto deep = choose_tiling({49, 512, 4608}, family, true, gpu);
    REQUIRE(deep);
    CHECK(deep->splits > 1);
    CHECK(int64_t{deep->splits} * deep->split_depth >= 4608);
    CHECK(int64_t{deep->splits - 1} * deep->split_depth < 4608);
    CHECK(choose_tiling({49, 512, 4608}, family, false, gpu)->splits == 1);
  }
  gpu_features tiny = gpu;
  tiny.max_group_size = 32;
  CHECK_FALSE(choose_tiling({64, 64, 64}, tile_family::tiled, true, tiny));
}

TEST_CASE("A tile's kernel is told how its groups are counted, and whether they are few", "[ops]") {
  gpu_features gpu = gpu_with_matrices();
  gpu.units = 100;
  tiling t{.threads = 256, .m = 32, .n = 32, .depth = 64, .rows = 16, .columns = 16};
  const uint32_t few = shader::product_asks_first;
  CHECK(tile_flags(t, {10, 30, 1}, 1, gpu) == few);
  CHECK(tile_flags(t, {10, 31, 1}, 1, gpu) == 0);
  CHECK(tile_flags(t, {10, 2, 5}, 5, gpu) == (few | shader::product_batched));
  t.splits = 3;
  CHECK(tile_flags(t, {10, 10, 3}, 1, gpu) == (few | shader::product_split));
  CHECK(tile_flags(t, {10, 10, 15}, 5, gpu) == (shader::product_split | shader::product_batched));
  t.rows = t.columns = 32; // which needs registers
  CHECK(tile_flags(t, {10, 3, 3}, 1, gpu) == (few | shader::product_split));
  CHECK(tile_flags(t, {10, 4, 3}, 1, gpu) == shader::product_split);
}

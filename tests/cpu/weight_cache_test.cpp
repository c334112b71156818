#include "cpu/weight_cache.hpp"

#include "support/catch.hpp"
#include "support/small_models.hpp"

using namespace troupe;

TEST_CASE("the CPU forgets weights that no plan holds", "[cpu]") {
  weight_cache cache;
  const weight_ptr first = weight::from_tensor(test::floats({1}, {-1}));
  const weight_cache::handle kept = cache.get(first);
  for (int i = 0; i < 1000; ++i)
    cache.get(weight::from_tensor(test::floats({1}, {static_cast<float>(i)})));
  CHECK(cache.known() < 100);
  CHECK(cache.get(first) == kept);
  CHECK(cache.bytes() == 4);
}

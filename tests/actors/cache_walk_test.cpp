// Caches that grow on a GPU, in steps of no particular order.
#include "base/seeded_random.hpp"
#include "support/held_caches.hpp"

using namespace troupe;
using namespace troupe::test;

TEST_CASE("steps of any length, from any of several states, see the rows of theirs", "[actors][vulkan][B7]") {
  const uint64_t seed = GENERATE(1, 2, 3, 4);
  INFO("seed " << seed);
  seeded_random rng(seed);
  engine e(engine_of({gpu("d", {.poison = true})}));
  const session model = e.load(cached_decoder());
  fed_decoder fed(model);
  fed.step(tokens(3, seed));
  std::vector<std::pair<held_caches, fed_decoder>> states(2, {put_caches(e, "d", fed.caches), fed});
  for (uint64_t i = 0; i < 60; ++i) {
    const size_t from = rng.below(states.size()), to = rng.below(states.size());
    const uint64_t what = rng.below(10);
    if (what == 0 && states.size() < 5) {
      states.push_back(states[from]);
    } else if (what == 1) {
      states[to] = states[from];
    } else { // mostly of the same length as the last one: such caches are made ahead
      const auto length = static_cast<int64_t>(what < 4 ? what : 1);
      auto& [held, wanted] = states[from];
      const tensor x = tokens(length, i);
      REQUIRE(same(held.step(model, x), wanted.step(x)));
    }
  }
  for (const auto& [held, wanted] : states)
    check_caches(e, held, wanted.caches);
  CHECK(new_gpu_messages() == "");
}

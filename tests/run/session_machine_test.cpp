// The session machine without actors: events in random orders, each run answered exactly once.
#include "support/session_world.hpp"

using namespace troupe;
using namespace troupe::test;

TEST_CASE("whatever happens in whatever order, each run is answered exactly once", "[run][A13][C11]") {
  const std::vector<session_trial> all = session_trials();
  size_t runs = 0, right = 0;
  for (uint32_t seed = 0; seed < 10'000; ++seed) {
    INFO("seed " << seed);
    session_world w(all[seed % all.size()], seed);
    w.play(60);
    runs += w.runs();
    right += w.right();
  }
  WARN(runs << " runs in 10,000 orders, " << right << " right");
  CHECK(right > runs / 3);
}

// How measurements change a replica's speed.
#include "strategy/replica_speed.hpp"
#include "support/catch.hpp"

#include <cmath>
#include <random>

using namespace troupe;

TEST_CASE("a few pieces are enough to see how fast a replica is", "[strategy][C6]") {
  replica_speed speed({.row_seconds = 1, .fixed_seconds = 0});
  CHECK(speed.seconds(10) == 10);
  for (int i = 0; i < 5; ++i)
    speed.measured(10, 30);
  CHECK(speed.seconds(10) == Approx(30).epsilon(0.04));
  CHECK(speed.figures().fixed_seconds == Approx(0).margin(1e-9));
  for (int i = 0; i < 5; ++i)
    speed.measured(10, 5);
  CHECK(speed.seconds(10) == Approx(5).epsilon(0.2));
}

TEST_CASE("pieces of different sizes tell the fixed part from the growing one", "[strategy][C6]") {
  replica_speed speed({.row_seconds = 0.1, .fixed_seconds = 0}); // in truth 2 s and 0.5 s a row
  std::mt19937 random(3);
  for (int i = 0; i < 60; ++i) {
    const double rows = 1 + static_cast<double>(random() % 20);
    speed.measured(rows, 2 + 0.5 * rows);
  }
  CHECK(speed.figures().row_seconds == Approx(0.5).epsilon(0.02));
  CHECK(speed.figures().fixed_seconds == Approx(2).epsilon(0.05));
  CHECK(speed.caution() < 1.1);
}

TEST_CASE("whatever is measured, figures stay finite and not negative", "[strategy][C6]") {
  std::mt19937 random(5);
  for (int trial = 0; trial < 200; ++trial) {
    replica_speed speed({.row_seconds = trial % 3 ? 0.01 : 0, .fixed_seconds = trial % 2 ? 0.02 : 0});
    for (int i = 0; i < 100; ++i) {
      speed.measured(1 + static_cast<double>(random() % 1000),
                     random() % 10 ? 1e-6 * static_cast<double>(random() % 1000000) : 0);
      CHECK((std::isfinite(speed.figures().row_seconds) && speed.figures().row_seconds >= 0));
      CHECK((std::isfinite(speed.figures().fixed_seconds) && speed.figures().fixed_seconds >= 0));
      CHECK((speed.caution() >= 1 && speed.caution() <= 3));
    }
  }
}

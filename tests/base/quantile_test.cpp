#include "base/quantile.hpp"

#include "base/round_up.hpp"
#include "support/catch.hpp"

using namespace troupe;

TEST_CASE("quantiles are samples", "[base]") {
  CHECK(median({}) == 0);
  CHECK(median({3}) == 3);
  CHECK(median({9, 1, 5}) == 5);
  CHECK(median({4, 1, 3, 2}) == 3); // of two the larger
  std::vector<double> samples;
  for (int i = 100; i > 0; --i)
    samples.push_back(i);
  CHECK(quantile(samples, 0) == 1);
  CHECK(quantile(samples, 0.99) == 99);
  CHECK(quantile(samples, 1) == 100);
}

TEST_CASE("sizes are divided and rounded upwards", "[base]") {
  CHECK(ceil_div(7, 3) == 3);
  CHECK(ceil_div(6, 3) == 2);
  CHECK(round_up(1, 64) == 64);
  CHECK(round_up(128, 64) == 128);
}

#include "run/symbol_forecast.hpp"
#include "support/catch.hpp"

using namespace troupe;

TEST_CASE("dims that grow evenly from run to run are foreseen", "[run][E6]") {
  symbol_forecast f;
  CHECK_FALSE(f.next({{"past", 64}, {"total", 65}, {"batch", 1}}));
  CHECK_FALSE(f.next({{"past", 65}, {"total", 66}, {"batch", 1}})); // it has grown once
  const auto third = f.next({{"past", 66}, {"total", 67}, {"batch", 1}});
  REQUIRE(third);
  CHECK(*third == bindings{{"past", 67}, {"total", 68}, {"batch", 1}});
  CHECK_FALSE(f.next({{"past", 68}, {"total", 69}, {"batch", 1}})); // by two
  CHECK(f.next({{"past", 70}, {"total", 71}, {"batch", 1}}) == bindings{{"past", 72}, {"total", 73}, {"batch", 1}});
}

TEST_CASE("dims that stay, shrink or belong to other symbols are not foreseen", "[run][E6]") {
  symbol_forecast f;
  for (int i = 0; i < 3; ++i)
    CHECK_FALSE(f.next({{"n", 5}}));
  for (const int64_t n : {4, 3, 2})
    CHECK_FALSE(f.next({{"n", n}}));
  for (const int64_t n : {10, 20})
    CHECK_FALSE(f.next({{"n", n}, {"m", 100 - n}})); // one grows, one shrinks
  CHECK_FALSE(f.next({{"n", 30}, {"m", 70}}));
  for (int i = 0; i < 3; ++i)
    CHECK_FALSE(f.next({}));
}

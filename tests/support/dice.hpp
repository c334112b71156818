// Random events, the same for equal seeds: which of several happens, and how it ends.
#pragma once

#include "run/request.hpp"

#include <random>

namespace troupe::test {

/// A source of random events.
class dice {
public:
  explicit dice(uint32_t seed) : random_(seed) {}

  double any() { return std::uniform_real_distribution<>()(random_); }
  bool chance(double p) { return any() < p; }
  size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  /// Returns how an order ends: almost always well, in the end always.
  failure ending(std::initializer_list<errc> bad) {
    if (calm || !chance(0.04))
      return {};
    return {std::data(bad)[below(bad.size())], "the test says so"};
  }

  bool calm = false; // nothing goes wrong any more

private:
  std::minstd_rand random_;
};

} // namespace troupe::test

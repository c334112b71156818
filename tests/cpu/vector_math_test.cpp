#include "cpu/fast_functions.hpp"
#include "cpu/vector_math.hpp"
#include "support/catch.hpp"

#include <cmath>
#include <limits>

using namespace troupe;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Largest |fast − exact| / max(|exact|, floor) on a grid.
template <class Fast, class Exact>
double worst(float low, float high, double floor, Fast f, Exact exact) {
  double worst = 0;
  for (int i = 0; i <= 100000; ++i) {
    const float x = low + (high - low) * static_cast<float>(i) / 100000;
    const double want = exact(static_cast<double>(x));
    worst = std::max(worst, std::abs(f(x) - want) / std::max(std::abs(want), floor));
  }
  return worst;
}

} // namespace

TEST_CASE("vectorised functions are as exact as floats", "[cpu]") {
  CHECK(worst(
            -87, 88, 0, [](float x) { return fast::exp(x); }, [](double x) { return std::exp(x); }) < 3e-7);
  CHECK(worst(
            -10, 10, 1e-12, [](float x) { return fast::exp<true>(x); }, [](double x) { return std::expm1(x); }) < 6e-7);
  CHECK(worst(
            0, 1, 1e-12, [](float x) { return fast::log1p(x); }, [](double x) { return std::log1p(x); }) < 3e-7);
  CHECK(worst(
            -20, 20, 1e-6, [](float x) { return fast::sigmoid(x); }, [](double x) { return 1 / (1 + std::exp(-x)); }) <
        4e-7);
  CHECK(worst(
            -10, 10, 0.01, [](float x) { return fast::tanh(x); }, [](double x) { return std::tanh(x); }) < 4e-7);
  CHECK(worst(
            -5, 5, 0.5, [](float x) { return fast::erf(x); }, [](double x) { return std::erf(x); }) < 8e-7);
  CHECK(worst(
            -0.01f, 0.01f, 1e-4, [](float x) { return fast::erf(x); }, [](double x) { return std::erf(x); }) < 1e-6);
}

TEST_CASE("vectorised functions keep the special values", "[cpu]") {
  CHECK(fast::exp(infinity) == infinity);
  CHECK(fast::exp(-infinity) == 0);
  CHECK(fast::exp(89) == infinity);
  CHECK(fast::exp(88.7f) < infinity);
  CHECK(std::isnan(fast::exp(NAN)));
  CHECK(fast::tanh(infinity) == 1);
  CHECK(fast::tanh(-100) == -1);
  CHECK(std::isnan(fast::tanh(NAN)));
  CHECK(fast::sigmoid(-infinity) == 0);
  CHECK(fast::sigmoid(infinity) == 1);
  CHECK(fast::erf(-10) == -1);
  CHECK(std::isnan(fast::erf(NAN)));
}

TEST_CASE("a softmax row sums to one, whatever its length and size of elements", "[cpu]") {
  for (int64_t n : {1, 7, 16, 33, 200}) {
    std::vector<float> x(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i)
      x[static_cast<size_t>(i)] = 500.f + static_cast<float>(i % 5);
    fast::softmax_row(x.data(), n);
    CHECK(fast::sum(x.data(), n) == Approx(1));
  }
  std::vector<float> masked{-infinity, 1.f, -infinity};
  fast::softmax_row(masked.data(), 3);
  CHECK(masked == std::vector<float>{0, 1, 0});
  std::vector<float> nothing{-infinity, -infinity};
  fast::softmax_row(nothing.data(), 2);
  CHECK(std::isnan(nothing[0]));
}

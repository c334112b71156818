#include "support/scalar_sweep.hpp"

#include <fmt/format.h>

#include <bit>
#include <random>

namespace troupe::test {
namespace {

constexpr double relative = 2e-6;

constexpr float special_points[] = {0.172f,     0.29f,
                                    0.35f,      0.4f,
                                    0.41f,      0.4142135f,
                                    0.5f,       0.7071068f,
                                    0.7853982f, 1,
                                    1.4142f,    1.5707964f,
                                    2,          2.4142f,
                                    2.5f,       3,
                                    3.1415927f, 4,
                                    4.712389f,  6,
                                    6.2831855f, 9.3f,
                                    10,         12,
                                    13.15f,     15,
                                    16.5f,      17.3f,
                                    20,         30,
                                    40,         87,
                                    87.33655f,  88,
                                    88.72283f,  88.8f,
                                    89.416f,    90,
                                    100,        103.97f,
                                    1e4f,       1e5f,
                                    1e7f,       8388608,
                                    16777216,   1e8f,
                                    1e18f,      1.8446744e19f,
                                    8.5e37f,    3.4028235e38f};

float with_bits(uint32_t bits) {
  return std::bit_cast<float>(bits);
}

/// The exact result as a float, overflow included.
double as_float(double exact) {
  return std::abs(exact) > std::numeric_limits<float>::max() * (1 + relative) ? std::copysign(INFINITY, exact) : exact;
}

} // namespace

std::vector<float> sweep_points(int64_t count) {
  constexpr uint32_t infinite = 0x7f800000;
  std::mt19937_64 random(5);
  std::vector<float> points{0.f, -0.f, INFINITY, -INFINITY, NAN};
  const int64_t spread = count / 4;
  const double step = double(infinite) / double(spread);
  for (int64_t i = 0; i < spread; ++i) {
    const auto bits = static_cast<uint32_t>((double(i) + double(random() % 1024) / 1024) * step);
    points.insert(points.end(), {with_bits(bits), -with_bits(bits)});
  }
  const int64_t each = std::max<int64_t>(1, count / 4 / static_cast<int64_t>(std::size(special_points)));
  for (const float p : special_points)
    for (int64_t i = 0; i < each; ++i) {
      // As many units beside it as there are points, or up to a sixteenth of it.
      const auto near = static_cast<uint32_t>(random() % (2 * static_cast<uint64_t>(each))),
                 far = static_cast<uint32_t>(random() % (1u << 20));
      const uint32_t bits =
          std::bit_cast<uint32_t>(p) + (i % 2 ? near - static_cast<uint32_t>(each) : far - (1u << 19));
      const float x = with_bits(std::min(bits, infinite - 1));
      points.insert(points.end(), {x, -x});
    }
  return points;
}

void sweep_error::add(float got, double exact, float x) {
  const double wanted = as_float(exact);
  if (std::isnan(wanted) ? std::isnan(got) : static_cast<double>(got) == wanted)
    return;
  // At the end of the range either an infinity or the largest number.
  const double limited =
      std::isinf(got) && std::isfinite(wanted) ? std::copysign(std::numeric_limits<float>::max(), got) : got;
  const double error = std::abs(limited - wanted) / (relative * std::abs(wanted) + absolute_);
  if (error > units_ || std::isnan(error)) {
    units_ = std::isnan(error) ? INFINITY : error;
    got_ = got;
    exact_ = exact;
    x_ = x;
  }
}

std::string sweep_error::text() const {
  return fmt::format("{} times what is allowed: f({:.9g}) is {:.9g}, exactly {:.17g}", units_, x_, got_, exact_);
}

} // namespace troupe::test

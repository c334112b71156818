// How far a function of floats is from float64, over all of float32: the points, and which results count as right.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

namespace troupe::test {

/// Returns how many points a function is swept at: 20,000, or environment variable TROUPE_SWEEP.
inline int64_t sweep_size() {
  const char* stated = std::getenv("TROUPE_SWEEP");
  return stated ? std::max<int64_t>(1000, std::atoll(stated)) : 20'000;
}

/// Returns `count` floats, about: half of them spread over all exponents, subnormal numbers among them, with both
/// signs; the others around points where functions have zeros, poles or overflow, or where implementations change their
/// formula.
std::vector<float> sweep_points(int64_t count);

/// The worst error of some results. A right one is within 2e-6 of the exact result.
///
/// A device may flush subnormal numbers: results, and factors of them such as e^x, which others of about 100 multiply.
/// So 2^-119 is not an error.
class sweep_error {
public:
  /// `beside_zeros`: the absolute error that is allowed, too, for a function that has zeros where its argument is not a
  /// float.
  explicit sweep_error(double beside_zeros = 0) : absolute_(beside_zeros + 0x1p-119) {}

  /// Takes the result `got` for `x`.
  void add(float got, double exact, float x);
  /// Returns the worst error, in units of the allowed one.
  double units() const { return units_; }
  std::string text() const;

private:
  double absolute_, units_ = 0, exact_ = 0;
  float got_ = 0, x_ = 0;
};

} // namespace troupe::test

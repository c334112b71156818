#include "support/tie_values.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>

namespace troupe::test {
namespace {

using generator = std::mt19937_64;

int between(generator& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

/// A float of random mantissa and sign with an exponent in the range.
float with_exponent(generator& random, int low, int high) {
  const float mantissa = 1 + static_cast<float>(random() >> 41) * 0x1p-23f;
  return std::ldexp(random() & 1 ? mantissa : -mantissa, between(random, low, high));
}

float neighbour(generator& random, float x, int reach) {
  for (int step = between(random, -reach, reach); step != 0; step += step < 0 ? 1 : -1)
    x = std::nextafter(x, step < 0 ? -INFINITY : INFINITY);
  return x;
}

/// 2^-power modulo an odd number below 2^24.
uint64_t halved(uint64_t odd, int power) {
  uint64_t r = 1;
  for (int i = 0; i < power; ++i)
    r = r % 2 == 0 ? r / 2 : (r + odd) / 2;
  return r;
}

} // namespace

float_pairs quotients_beside_ties(size_t count) {
  generator random(1);
  float_pairs pairs;
  while (pairs.a.size() < count) {
    // 2^25 a ≡ small odd number (mod b): twice the remainder of 2^24 a / b is that much from b.
    const uint64_t b = (uint64_t{1} << 23 | random() >> 41 | 1);
    const uint64_t small = static_cast<uint64_t>(2 * between(random, 0, 3) + 1);
    const uint64_t a = (random() & 1 ? small : b - small) * halved(b, 25) % b;
    if (a < uint64_t{1} << 23)
      continue;
    pairs.a.push_back(std::ldexp(static_cast<float>(a), between(random, -40, 40)));
    pairs.b.push_back(
        std::ldexp(random() & 1 ? static_cast<float>(b) : -static_cast<float>(b), between(random, -40, 40)));
  }
  return pairs;
}

float_pairs any_pairs(size_t count) {
  generator random(2);
  float_pairs pairs;
  while (pairs.a.size() < count) {
    const float a = with_exponent(random, -126, 127), b = with_exponent(random, -126, 127);
    if (std::abs(a / b) < 0x1p-126f)
      continue;
    pairs.a.push_back(a);
    pairs.b.push_back(b);
  }
  return pairs;
}

float_pairs subnormal_pairs(size_t count) {
  generator random(3);
  float_pairs pairs;
  for (size_t i = 0; i < count; ++i) {
    const float small = std::ldexp(with_exponent(random, 0, 0), between(random, -149, -127));
    const float b = with_exponent(random, -100, 126);
    if (i % 3 == 0) { // a subnormal quotient, half of them half-way between two
      const int bits = between(random, 1, 20);
      const float whole = static_cast<float>(between(random, 0, (1 << bits) - 1)) + (random() & 1 ? 0.5f : 0.25f);
      pairs.a.push_back(std::ldexp(whole, -149 + 64));
      pairs.b.push_back(random() & 1 ? 0x1p64f : with_exponent(random, 64, 64));
    } else {
      pairs.a.push_back(i % 3 == 1 ? small : b);
      pairs.b.push_back(i % 3 == 1 ? b : small);
    }
  }
  return pairs;
}

float_pairs beside_multiples(size_t count, float part, int limit) {
  generator random(4);
  float_pairs pairs;
  for (size_t i = 0; i < count; ++i) {
    const float b = std::abs(with_exponent(random, -12, 12));
    const float n = static_cast<float>(between(random, -limit, limit - 1)) + part;
    const float a = neighbour(random, n * b, 1);
    pairs.a.push_back(std::fpclassify(a) == FP_SUBNORMAL ? 0 : a); // beside 0: those are for subnormal_pairs
    pairs.b.push_back(b);
  }
  return pairs;
}

std::vector<float> beside_squares(size_t count) {
  generator random(5);
  std::vector<float> values;
  for (size_t i = 0; i < count; ++i) {
    const auto n = static_cast<float>(between(random, 1, 1 << 12));
    values.push_back(neighbour(random, std::ldexp(n * n, 2 * between(random, -20, 20)), 1));
  }
  return values;
}

} // namespace troupe::test

// Random numbers that follow from a seed alone, by arithmetic that is the same everywhere.
#pragma once

#include <cstdint>
#include <random>

namespace troupe {

/// Random numbers that do not depend on the standard library's distributions.
class seeded_random {
public:
  explicit seeded_random(uint64_t seed) : engine_(seed) {}

  /// Returns a number from [0, 1).
  double unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  /// Returns a number from (0, 1), of which there is a logarithm.
  double open_unit() { return (static_cast<double>(engine_() >> 11) + 0.5) * 0x1p-53; }
  /// Returns a number from [low, high).
  double between(double low, double high) { return low + (high - low) * unit(); }
  /// Returns a whole number from [0, bound), bound > 0.
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(unit() * bound); }

private:
  std::mt19937_64 engine_;
};

} // namespace troupe

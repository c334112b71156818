// 16-bit floating point element types, stored as bits, computed with as float.
#pragma once

#include <bit>
#include <cstdint>

namespace troupe {

/// IEEE 754 binary16; conversion from float rounds to nearest even.
struct float16 {
  uint16_t bits = 0;

  float16() = default;
  explicit float16(float value) : bits(encode(value)) {}
  operator float() const { return decode(bits); }

  static float decode(uint16_t half) { return static_cast<float>(std::bit_cast<_Float16>(half)); }
  static uint16_t encode(float value) { return std::bit_cast<uint16_t>(static_cast<_Float16>(value)); }
};

/// The upper half of a binary32; conversion from float rounds to nearest even and keeps NaN a NaN.
struct bfloat16 {
  uint16_t bits = 0;

  bfloat16() = default;
  explicit bfloat16(float value) : bits(encode(value)) {}
  operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }

  static uint16_t encode(float value) {
    const auto word = std::bit_cast<uint32_t>(value);
    if (value != value)
      return static_cast<uint16_t>((word >> 16) | 0x40);
    return static_cast<uint16_t>((word + 0x7fff + ((word >> 16) & 1)) >> 16);
  }
};

} // namespace troupe

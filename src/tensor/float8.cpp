#include "tensor/float8.hpp"

#include <array>
#include <cmath>
#include <limits>

namespace troupe {
namespace {

/// How a float8 type reads its bits.
struct format {
  int mantissa_bits;
  int bias;
  uint8_t largest;    // bits of the largest finite value
  uint8_t nan;        // bits of a NaN
  bool infinite;      // has infinities, just above `largest`
  bool unsigned_zero; // no negative zero: its bits are the NaN
};

format format_of(dtype type) {
  switch (type) {
    case dtype::float8e4m3fn: return {3, 7, 0x7e, 0x7f, false, false};
    case dtype::float8e4m3fnuz: return {3, 8, 0x7f, 0x80, false, true};
    case dtype::float8e5m2: return {2, 15, 0x7b, 0x7e, true, false};
    case dtype::float8e5m2fnuz: return {2, 16, 0x7f, 0x80, false, true};
    default: fail(errc::internal, "{} is not an 8-bit float type", to_string(type));
  }
}

float decode(const format& f, uint8_t bits) {
  const uint8_t magnitude = bits & 0x7f;
  const float sign = bits & 0x80 ? -1.f : 1.f;
  if (f.unsigned_zero ? bits == f.nan : magnitude > f.largest + (f.infinite ? 1 : 0))
    return std::numeric_limits<float>::quiet_NaN();
  if (magnitude > f.largest)
    return sign * std::numeric_limits<float>::infinity();
  const int exponent = magnitude >> f.mantissa_bits;
  const int fraction = magnitude & ((1 << f.mantissa_bits) - 1);
  const int significand = exponent ? fraction | 1 << f.mantissa_bits : fraction;
  const int power = (exponent ? exponent : 1) - f.bias - f.mantissa_bits;
  return sign * std::ldexp(static_cast<float>(significand), power);
}

using decode_table = std::array<float, 256>;

decode_table table_of(dtype type) {
  decode_table table;
  for (int bits = 0; bits < 256; ++bits)
    table[bits] = decode(format_of(type), static_cast<uint8_t>(bits));
  return table;
}

} // namespace

float decode_float8(dtype type, uint8_t bits) {
  static const std::array<decode_table, 4> tables{table_of(dtype::float8e4m3fn), table_of(dtype::float8e4m3fnuz),
                                                  table_of(dtype::float8e5m2), table_of(dtype::float8e5m2fnuz)};
  expects(is_float8(type), "decode_float8: not a float8");
  return tables[static_cast<size_t>(type) - static_cast<size_t>(dtype::float8e4m3fn)][bits];
}

uint8_t encode_float8(dtype type, float value, bool saturate) {
  const format f = format_of(type);
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value))
    return f.unsigned_zero ? f.nan : f.nan | sign;
  if (value == 0)
    return f.unsigned_zero ? 0 : sign;
  int exponent = 0;
  const float magnitude = std::abs(value);
  std::frexp(magnitude, &exponent); // magnitude = m · 2^exponent, m in [0.5, 1)
  // Count units of the last place: subnormals share the smallest normal's.
  const int power = std::max(exponent - 1, 1 - f.bias) - f.mantissa_bits;
  const int lowest_power = 1 - f.bias - f.mantissa_bits;
  // Consecutive floats have consecutive bits, so rounding up carries into the exponent by itself.
  const float units = std::isinf(magnitude) ? 1024.f : std::nearbyint(std::ldexp(magnitude, -power));
  const int bits = std::isinf(magnitude) || power - lowest_power > 64
                       ? 1024
                       : static_cast<int>(units) + ((power - lowest_power) << f.mantissa_bits);
  if (bits == 0 && f.unsigned_zero)
    return 0;
  if (bits <= f.largest)
    return static_cast<uint8_t>(bits) | sign;
  if (saturate)
    return f.largest | sign;
  if (f.infinite)
    return static_cast<uint8_t>(f.largest + 1) | sign;
  return f.unsigned_zero ? f.nan : f.nan | sign;
}

} // namespace troupe

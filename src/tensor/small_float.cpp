#include "tensor/small_float.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace troupe {
namespace {

/// How a type with a sign reads its bits.
struct format {
  int mantissa_bits;
  int bias;
  uint8_t largest;    // bits of the largest finite value
  uint8_t nan;        // bits of a NaN
  bool infinite;      // has infinities, just above `largest`
  bool unsigned_zero; // no negative zero: its bits are the NaN
  uint8_t sign = 0x80;
};

format format_of(dtype type) {
  switch (type) {
    case dtype::float8e4m3fn: return {3, 7, 0x7e, 0x7f, false, false};
    case dtype::float8e4m3fnuz: return {3, 8, 0x7f, 0x80, false, true};
    case dtype::float8e5m2: return {2, 15, 0x7b, 0x7f, true, false};
    case dtype::float8e5m2fnuz: return {2, 16, 0x7f, 0x80, false, true};
    case dtype::float4e2m1: return {1, 1, 0x7, 0x8, false, false, 0x8}; // it has no NaN: this is −0
    default: fail(errc::internal, "{} is not a small float with a sign", to_string(type));
  }
}

float decode(const format& f, uint8_t bits) {
  const uint8_t magnitude = bits & (f.sign - 1);
  const float sign = bits & f.sign ? -1.f : 1.f;
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

// -- float8e8m0: the exponent of a float32

constexpr uint8_t scale_nan = 0xff, largest_scale = 0xfe;

float decode_scale(uint8_t bits) {
  return bits == scale_nan ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.f, bits - 127);
}

uint8_t encode_scale(float value, const small_float_rule& rule) {
  const auto bits = std::bit_cast<uint32_t>(value) & 0x7fffffff;
  const uint32_t exponent = bits >> 23, fraction = bits & 0x7fffff;
  if (exponent == 0xff)
    return scale_nan;
  // Exponent 0 means 2^−127 here, but less than 2^−126 in a float32: its fraction is 1 at half of that.
  const uint32_t half = 0x400000, behind = exponent == 0 ? (fraction > half ? fraction - half : 0) : fraction,
                 tie = exponent == 0 ? half / 2 : half;
  const bool up =
      rule.rounding == scale_rounding::up ? behind > 0 : rule.rounding == scale_rounding::nearest && behind >= tie;
  if (exponent == largest_scale && up)
    return rule.saturate ? largest_scale : scale_nan;
  return static_cast<uint8_t>(exponent + (up ? 1 : 0));
}

// -- all types

using decode_table = std::array<float, 256>;

decode_table table_of(dtype type) {
  decode_table table;
  for (int bits = 0; bits < 256; ++bits)
    table[bits] = type == dtype::float8e8m0 ? decode_scale(static_cast<uint8_t>(bits))
                                            : decode(format_of(type), static_cast<uint8_t>(bits));
  return table;
}

constexpr auto small_types = std::to_array<dtype>({dtype::float8e4m3fn, dtype::float8e4m3fnuz, dtype::float8e5m2,
                                                   dtype::float8e5m2fnuz, dtype::float4e2m1, dtype::float8e8m0});

std::array<decode_table, small_types.size()> all_tables() {
  std::array<decode_table, small_types.size()> tables;
  for (size_t i = 0; i < tables.size(); ++i)
    tables[i] = table_of(small_types[i]);
  return tables;
}

} // namespace

float decode_small_float(dtype type, uint8_t bits) {
  static const auto tables = all_tables();
  for (size_t i = 0; i < tables.size(); ++i)
    if (small_types[i] == type)
      return tables[i][bits];
  fail(errc::internal, "{} is not a small float", to_string(type));
}

uint8_t encode_small_float(dtype type, float value, const small_float_rule& rule) {
  if (type == dtype::float8e8m0)
    return encode_scale(value, rule);
  const format f = format_of(type);
  const uint8_t sign = std::signbit(value) ? f.sign : 0;
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
  if (rule.saturate || type == dtype::float4e2m1)
    return f.largest | sign;
  if (f.infinite)
    return static_cast<uint8_t>(f.largest + 1) | sign;
  return f.unsigned_zero ? f.nan : f.nan | sign;
}

} // namespace troupe

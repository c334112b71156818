// Floating point element types of 8 and 4 bits, stored as bits, computed with as float: ONNX's four float8 types,
// float4e2m1, and float8e8m0, whose values are powers of two (scales of blocks).
#pragma once

#include "tensor/dtype.hpp"

namespace troupe {

constexpr bool is_small_float(dtype type) {
  return (types::small_floats & set_of(type)) != 0;
}

/// Where a value between two powers of two goes.
enum class scale_rounding : uint8_t { up, down, nearest };

/// What `encode_small_float` does with values that a type does not have.
struct small_float_rule {
  bool saturate = true;                         // beyond the largest value of a type of 8 bits: that one
  scale_rounding rounding = scale_rounding::up; // of float8e8m0
};

/// Returns the value of `bits` read as `type`, which must be a small float.
float decode_small_float(dtype type, uint8_t bits);

/// Returns the bits of `value` as a small float, those of float4e2m1 in the low half.
///
/// A float8 is rounded to nearest even. A value out of range becomes the largest finite one if the rule says so, else
/// infinity if the type has it and NaN if not; infinities likewise; NaN stays NaN. A float4e2m1 is rounded likewise and
/// always saturates; NaN becomes −0. A float8e8m0 has no sign and no zero: the sign is dropped, 0 and all that is less
/// than it become 2^−127; infinities and NaN become NaN.
uint8_t encode_small_float(dtype type, float value, const small_float_rule& rule = {});

} // namespace troupe

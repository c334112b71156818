// 8-bit floating point element types (ONNX's four), stored as bytes, computed with as float.
#pragma once

#include "tensor/dtype.hpp"

namespace troupe {

constexpr bool is_float8(dtype type) {
  return (types::float8 & set_of(type)) != 0;
}

/// Returns the value of `bits` read as `type`, which must be a float8.
float decode_float8(dtype type, uint8_t bits);

/// Returns `value` rounded to nearest even. A value out of range becomes the largest finite one if `saturate`, else
/// infinity if the type has it and NaN if not; infinities likewise; NaN stays NaN.
uint8_t encode_float8(dtype type, float value, bool saturate);

} // namespace troupe

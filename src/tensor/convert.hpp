// Conversion between element types, as ONNX's Cast defines it.
#pragma once

#include "tensor/elements.hpp"
#include "tensor/small_float.hpp"

#include <cmath>
#include <limits>

namespace troupe {

/// Converts all elements of `from` to `to`'s type; both have the same number of elements.
///
/// Floats go to integers towards zero and saturate, NaN becomes 0 (ONNX leaves out-of-range values undefined); integers
/// wrap into narrower ones. Into 4-bit and 2-bit integers floats wrap too, as ONNX's cases
/// expect. To small floats see `encode_small_float`.
/// Anything but zero is true. Text is parsed as a number; `errc::invalid_input` where it is not one.
void convert(const const_view& from, const mutable_view& to, const small_float_rule& rule = {});

/// Converts a number to integer type T: towards zero, saturating, NaN to 0.
template <class T, class Float>
T to_integer(Float value) {
  // The upper bound is 2^digits, exact in any float type; the comparison is false for NaN.
  const Float above = std::ldexp(Float(1), std::numeric_limits<T>::digits);
  if (!(value < above))
    return value >= above ? std::numeric_limits<T>::max() : T(0);
  if (value <= (std::is_signed_v<T> ? -above : Float(-1)))
    return std::numeric_limits<T>::min();
  return static_cast<T>(value);
}

} // namespace troupe

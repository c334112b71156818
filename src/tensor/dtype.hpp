// Sets of element types, and calls by element type.
#pragma once

#include "base/error.hpp"
#include "troupe/tensor.hpp"

namespace troupe {

/// Returns the type numbered `onnx_code`; throws `errc::unsupported` for complex, unknown and undefined codes.
dtype dtype_from_onnx(int onnx_code);

/// Set of element types, one bit each.
using dtype_set = uint32_t;

/// All sequences share bit 30 and all optionals bit 31, so numbers of element types must stay below 30.
constexpr dtype_set set_of(dtype type) {
  return dtype_set{1} << (is_optional(type) ? 31u : is_sequence(type) ? 30u : static_cast<unsigned>(type));
}
template <class... Types>
constexpr dtype_set set_of(dtype first, Types... rest) {
  return set_of(first) | (set_of(rest) | ...);
}

namespace types {
inline constexpr dtype_set floats = set_of(dtype::float32, dtype::float16, dtype::bfloat16, dtype::float64);
inline constexpr dtype_set signed_ints = set_of(dtype::int8, dtype::int16, dtype::int32, dtype::int64);
inline constexpr dtype_set unsigned_ints = set_of(dtype::uint8, dtype::uint16, dtype::uint32, dtype::uint64);
inline constexpr dtype_set integers = signed_ints | unsigned_ints;
inline constexpr dtype_set numeric = floats | integers;
inline constexpr dtype_set boolean = set_of(dtype::boolean);
inline constexpr dtype_set string = set_of(dtype::string);
inline constexpr dtype_set float8 =
    set_of(dtype::float8e4m3fn, dtype::float8e4m3fnuz, dtype::float8e5m2, dtype::float8e5m2fnuz);
/// Floats that are only stored, in 8 or 4 bits, and computed with as float32.
inline constexpr dtype_set small_floats = float8 | set_of(dtype::float8e8m0, dtype::float4e2m1);
/// Integers that are only stored, in 4 or 2 bits.
inline constexpr dtype_set small_ints = set_of(dtype::int4, dtype::uint4, dtype::int2, dtype::uint2);
/// What shares bytes with its neighbours.
inline constexpr dtype_set packed = small_ints | set_of(dtype::float4e2m1);
/// What every data-movement operator takes: all types whose elements are whole bytes.
inline constexpr dtype_set fixed_size = numeric | boolean;
inline constexpr dtype_set sequence = set_of(sequence_of(dtype::float32));
inline constexpr dtype_set optional = set_of(optional_of(dtype::float32));
inline constexpr dtype_set containers = sequence | optional;
/// All tensors.
inline constexpr dtype_set any = ~containers;
} // namespace types

/// Names the C++ type of elements of a `dtype` for `visit_dtype`.
template <class T>
struct type_tag {
  using type = T;
};

/// Calls `f(type_tag<T>{})` with the C++ type of a float `type`; throws `errc::unsupported` for the others.
template <class F>
decltype(auto) visit_float(dtype type, F&& f) {
  switch (type) {
    case dtype::float32: return f(type_tag<float>{});
    case dtype::float64: return f(type_tag<double>{});
    case dtype::float16: return f(type_tag<float16>{});
    case dtype::bfloat16: return f(type_tag<bfloat16>{});
    default: fail(errc::unsupported, "element type {} is not a floating-point type", to_string(type));
  }
}

/// Calls `f(type_tag<T>{})` with the C++ type of an integer `type`; throws `errc::unsupported` for the others.
template <class F>
decltype(auto) visit_integer(dtype type, F&& f) {
  switch (type) {
    case dtype::int8: return f(type_tag<int8_t>{});
    case dtype::int16: return f(type_tag<int16_t>{});
    case dtype::int32: return f(type_tag<int32_t>{});
    case dtype::int64: return f(type_tag<int64_t>{});
    case dtype::uint8: return f(type_tag<uint8_t>{});
    case dtype::uint16: return f(type_tag<uint16_t>{});
    case dtype::uint32: return f(type_tag<uint32_t>{});
    case dtype::uint64: return f(type_tag<uint64_t>{});
    default: fail(errc::unsupported, "element type {} is not an integer type", to_string(type));
  }
}

/// Calls `f(type_tag<T>{})` for float and integer types; throws `errc::unsupported` for the others.
template <class F>
decltype(auto) visit_numeric(dtype type, F&& f) {
  if (types::floats & set_of(type))
    return visit_float(type, std::forward<F>(f));
  return visit_integer(type, std::forward<F>(f));
}

/// Calls `f(type_tag<T>{})` with an unsigned integer as wide as `type`'s elements: for kernels that only move bytes.
template <class F>
decltype(auto) visit_width(dtype type, F&& f) {
  switch (bits_of(type)) {
    case 8: return f(type_tag<uint8_t>{});
    case 16: return f(type_tag<uint16_t>{});
    case 32: return f(type_tag<uint32_t>{});
    case 64: return f(type_tag<uint64_t>{});
    default: fail(errc::unsupported, "elements of type {} cannot be moved one by one", to_string(type));
  }
}

} // namespace troupe

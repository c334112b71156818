// Host tensors: element type, shape, and row-major bytes that are shared between copies.
//
//   auto image = troupe::tensor::of<float>({1, 3}, std::vector<float>{0.1f, 0.2f, 0.3f});
//   troupe::tensor empty(troupe::dtype::float32, {8, 3, 224, 224}); // fill it: empty.mutable_data<float>()
//
// A tensor is a handle: copying it shares the bytes. The maker of a tensor fills it through `mutable_data` before it
// hands out copies; afterwards the bytes are immutable by convention, so handles may cross threads freely. Tensors of
// strings hold std::string objects; 4-bit types hold two elements a byte, 2-bit types four. ONNX's sequences and
// optionals are tensors of one dim whose elements are tensors: `tensor::sequence`, `tensor::optional`.
#pragma once

#include "troupe/error.hpp"
#include "troupe/export.hpp"
#include "troupe/float16.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Element type of a tensor; the numbers are those of ONNX's TensorProto.DataType. Sequences and optionals have types
/// beside these: what they hold, with a bit for each (`sequence_of`, `optional_of`).
enum class dtype : uint8_t {
  undefined = 0,
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  uint16 = 4,
  int16 = 5,
  int32 = 6,
  int64 = 7,
  string = 8,
  boolean = 9,
  float16 = 10,
  float64 = 11,
  uint32 = 12,
  uint64 = 13,
  bfloat16 = 16,
  float8e4m3fn = 17,
  float8e4m3fnuz = 18,
  float8e5m2 = 19,
  float8e5m2fnuz = 20,
  uint4 = 21,
  int4 = 22,
  float4e2m1 = 23,
  float8e8m0 = 24, // powers of two: scales
  uint2 = 25,
  int2 = 26,
};

/// Bits of `dtype` that say that a value is a sequence, or an optional; both: an optional that holds a sequence.
/// Nothing else nests.
inline constexpr uint8_t sequence_bit = 0x20, optional_bit = 0x40;

constexpr bool is_optional(dtype type) {
  return (static_cast<uint8_t>(type) & optional_bit) != 0;
}
/// Returns whether a value is a sequence; not for an optional that holds one.
constexpr bool is_sequence(dtype type) {
  return !is_optional(type) && (static_cast<uint8_t>(type) & sequence_bit) != 0;
}
/// Returns whether the elements of a value are tensors.
constexpr bool is_container(dtype type) {
  return is_optional(type) || is_sequence(type);
}
/// Returns whether elements are C++ objects, not bytes: those of strings, sequences and optionals.
constexpr bool holds_objects(dtype type) {
  return type == dtype::string || is_container(type);
}
/// Returns the type of a sequence of tensors of type `element`, which is not a container.
constexpr dtype sequence_of(dtype element) {
  return static_cast<dtype>(static_cast<uint8_t>(element) | sequence_bit);
}
/// Returns the type of an optional that holds a tensor of type `element`, or a sequence of that type.
constexpr dtype optional_of(dtype element) {
  return static_cast<dtype>(static_cast<uint8_t>(element) | optional_bit);
}
/// Returns what a sequence or optional holds.
constexpr dtype element_of(dtype container) {
  return static_cast<dtype>(static_cast<uint8_t>(container) & ~(is_optional(container) ? optional_bit : sequence_bit));
}

/// Returns the ONNX type name, e.g. "float32" or "sequence(float32)".
TROUPE_API std::string_view to_string(dtype type);

/// Returns the bits an element occupies (4 or 2 for the packed types); 0 where elements are objects (`holds_objects`).
TROUPE_API int bits_of(dtype type);

/// Returns the bytes that `count` elements occupy; two 4-bit elements share a byte, or four 2-bit ones, the first in
/// its lowest bits.
TROUPE_API int64_t bytes_of(dtype type, int64_t count);

/// The `dtype` of a C++ element type.
template <class T>
inline constexpr dtype dtype_of = dtype::undefined;
template <>
inline constexpr dtype dtype_of<float> = dtype::float32;
template <>
inline constexpr dtype dtype_of<double> = dtype::float64;
template <>
inline constexpr dtype dtype_of<float16> = dtype::float16;
template <>
inline constexpr dtype dtype_of<bfloat16> = dtype::bfloat16;
template <>
inline constexpr dtype dtype_of<int8_t> = dtype::int8;
template <>
inline constexpr dtype dtype_of<int16_t> = dtype::int16;
template <>
inline constexpr dtype dtype_of<int32_t> = dtype::int32;
template <>
inline constexpr dtype dtype_of<int64_t> = dtype::int64;
template <>
inline constexpr dtype dtype_of<uint8_t> = dtype::uint8;
template <>
inline constexpr dtype dtype_of<uint16_t> = dtype::uint16;
template <>
inline constexpr dtype dtype_of<uint32_t> = dtype::uint32;
template <>
inline constexpr dtype dtype_of<uint64_t> = dtype::uint64;
template <>
inline constexpr dtype dtype_of<bool> = dtype::boolean;
template <>
inline constexpr dtype dtype_of<std::string> = dtype::string;

/// Dims of a tensor, outermost first; empty for a scalar.
using shape = std::vector<int64_t>;

/// Returns the number of elements (1 for a scalar); throws `errc::invalid_model` on a negative dim or overflow.
TROUPE_API int64_t volume(std::span<const int64_t> dims);

/// Returns e.g. "[1, 3, 224, 224]".
TROUPE_API std::string to_string(std::span<const int64_t> dims);

/// Type, dims and bytes that somebody else keeps alive, to read.
struct const_view {
  dtype type = dtype::undefined;
  std::span<const int64_t> dims;
  const void* data = nullptr;

  int64_t size() const { return volume(dims); }
  int64_t bytes() const { return bytes_of(type, size()); }
  template <class T>
  const T* as() const {
    return static_cast<const T*>(data);
  }
};

/// The same, to write.
struct mutable_view {
  dtype type = dtype::undefined;
  std::span<const int64_t> dims;
  void* data = nullptr;

  int64_t size() const { return volume(dims); }
  int64_t bytes() const { return bytes_of(type, size()); }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  operator const_view() const { return {type, dims, data}; }
};

/// A host tensor (see the top of this file).
class TROUPE_API tensor {
public:
  /// Makes an undefined tensor: no type, no bytes.
  tensor() = default;

  /// Makes a tensor with its own, uninitialised bytes (strings are empty); 64-byte aligned. Throws
  /// `errc::out_of_memory`.
  tensor(dtype type, shape dims);

  /// Makes a sequence. Throws `errc::invalid_argument` if an element has another type than `element`.
  static tensor sequence(dtype element, std::vector<tensor> elements);

  /// Makes an optional of tensors, or of sequences, of type `element`: an empty one if `value` is undefined. Throws
  /// like `sequence`.
  static tensor optional(dtype element, const tensor& value);

  /// Makes a tensor over bytes that `owner` keeps alive, e.g. a mapped file; nothing is copied.
  tensor(dtype type, shape dims, std::shared_ptr<const void> owner, const void* data);

  /// Makes a tensor from values. Throws `errc::invalid_argument` if they do not fill the shape.
  template <class T>
  static tensor of(shape dims, std::span<const T> values) {
    tensor t(dtype_of<T>, std::move(dims));
    if (t.size() != static_cast<int64_t>(values.size()))
      throw error(errc::invalid_argument, "tensor::of: " + std::to_string(values.size()) +
                                              " values do not fill the shape " + to_string(t.dims()));
    std::copy(values.begin(), values.end(), t.mutable_data<T>());
    return t;
  }
  template <class T>
  static tensor scalar(T value) {
    return of<T>({}, std::span<const T>(&value, 1));
  }

  bool defined() const { return type_ != dtype::undefined; }
  dtype type() const { return type_; }
  const shape& dims() const { return dims_; }
  /// Returns the number of elements.
  int64_t size() const { return volume(dims_); }
  /// Returns the number of bytes.
  int64_t bytes() const { return bytes_of(type_, size()); }

  const void* data() const { return data_; }
  void* mutable_data() { return const_cast<void*>(data_); }
  /// Returns the elements; T is that of `type()`, see `dtype_of`.
  template <class T>
  const T* data() const {
    return static_cast<const T*>(data_);
  }
  template <class T>
  T* mutable_data() {
    return static_cast<T*>(mutable_data());
  }
  template <class T>
  std::span<const T> values() const {
    return {data<T>(), static_cast<size_t>(size())};
  }

  /// Returns the same bytes under another shape of equal volume. Throws `errc::invalid_argument` where it is another.
  tensor reshaped(shape dims) const;

  const_view view() const { return {type_, dims_, data_}; }
  mutable_view mutable_ref() { return {type_, dims_, mutable_data()}; }

private:
  dtype type_ = dtype::undefined;
  shape dims_;
  std::shared_ptr<const void> owner_;
  const void* data_ = nullptr;
};

/// Tensors by the name of the input or output.
using named_tensors = std::map<std::string, tensor>;

} // namespace troupe

// Host tensors: element type, shape, and row-major bytes that are shared between copies.
//
// A tensor is a handle: copying it shares the bytes. Whoever makes a tensor fills it through `mutable_data` before it
// hands out copies; afterwards the bytes are immutable by convention, so handles may cross threads freely.
// Tensors of strings hold std::string objects; 4-bit types hold two elements a byte.
#pragma once

#include "tensor/dtype.hpp"
#include "tensor/shape.hpp"

#include <cstddef>
#include <memory>
#include <span>

namespace troupe {

/// Where a kernel reads: type, dims and bytes of an operand; does not own.
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

/// Where a kernel writes.
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
class tensor {
public:
  /// Makes an undefined tensor: no type, no bytes.
  tensor() = default;

  /// Makes a tensor with its own, uninitialised bytes (strings are empty); 64-byte aligned.
  tensor(dtype type, shape dims);

  /// Makes a tensor over bytes that `owner` keeps alive, e.g. a mapped file; nothing is copied.
  tensor(dtype type, shape dims, std::shared_ptr<const void> owner, const void* data);

  /// Makes a tensor from values.
  template <class T>
  static tensor of(shape dims, std::span<const T> values) {
    tensor t(dtype_of<T>, std::move(dims));
    expects(t.size() == static_cast<int64_t>(values.size()), "tensor::of: values do not fill the shape");
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

  /// Returns the same bytes under another shape of equal volume.
  tensor reshaped(shape dims) const;

  const_view view() const { return {type_, dims_, data_}; }
  mutable_view mutable_ref() { return {type_, dims_, mutable_data()}; }

private:
  dtype type_ = dtype::undefined;
  shape dims_;
  std::shared_ptr<const void> owner_;
  const void* data_ = nullptr;
};

/// Returns the elements of an integer or boolean tensor as int64; throws `errc::invalid_model` for other types.
std::vector<int64_t> to_int64(const const_view& values);

/// Returns the elements of a numeric tensor as double; throws `errc::unsupported` for other types.
std::vector<double> to_double(const const_view& values);

} // namespace troupe

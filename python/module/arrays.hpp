// NumPy arrays ↔ troupe's tensors, without a copy where memory allows, and counters that show it.
#pragma once

#include "keep_alive.hpp"

#include "troupe/tensor.hpp"

#include <pybind11/numpy.h>

#include <optional>
#include <span>

namespace troupe::python {

/// Bytes that went between Python and troupe so far.
struct copy_counters {
  uint64_t borrowed_bytes = 0;   // inputs whose memory runs have read where it was
  uint64_t copied_bytes = 0;     // inputs that were not in C order, aligned, of this machine's byte order; or strings
  uint64_t handed_bytes = 0;     // outputs that Python got as they are
  uint64_t copied_out_bytes = 0; // outputs that share memory with something else; or strings
};
copy_counters counters();

/// Returns a tensor over an array's memory, which it keeps alive; a copy where the memory does not fit (see
/// `copy_counters`), and always if `copy`. Objects that NumPy can make an array of are taken, too, by DLPack first.
/// Throws `errc::invalid_input`, naming `name`.
tensor tensor_of(py::handle object, const std::string& name, bool copy = false);

/// Returns an array over a tensor's memory, which it keeps alive; of a copy of it if `copy`. Strings become an array of
/// str objects. Throws `errc::unsupported` for types that NumPy does not have, naming `name`.
py::array array_of(const tensor& value, const std::string& name, bool copy);

/// Returns a tensor's bytes as an array of unsigned integers of its elements' width: uint8, of packed types two
/// elements each; uint16.
py::array bits_of_tensor(const tensor& value);

/// Returns a tensor with bytes of its own.
tensor copy_of(const tensor& value);

/// Returns a str's bytes, with those that Python decoded as half surrogates because they are not UTF-8. Throws
/// `errc::invalid_input` for other half surrogates; `what` is what the error calls the str.
std::string utf8_of(py::handle text, const std::string& what);

/// Returns the bytes of what Python has in a buffer; they stay where they are while `info` lives.
std::span<const std::byte> span_of(const py::buffer_info& info);

/// Returns the NumPy type; nullopt where there is none.
std::optional<py::dtype> numpy_type(dtype type);

} // namespace troupe::python

// The .npy format (NumPy, versions 1 to 3): a magic, a header that is a Python dict literal, the elements.
#pragma once

#include "tensor/elements.hpp"

#include <cstddef>
#include <functional>
#include <span>
#include <string>

namespace troupe {

/// What the header of a .npy array says.
struct npy_header {
  dtype type = dtype::undefined;
  shape dims;
  bool fortran_order = false;
  size_t data_offset = 0; // bytes from the start of the array

  /// Returns the size of the whole array in bytes, header included; throws if it overflows.
  int64_t total_bytes() const;
};

/// Longest header that is read: what version 1 can hold.
inline constexpr size_t max_npy_header_bytes = 12 + 65535;

/// Parses the header at the start of `bytes` (which may end after the header). Throws `errc::invalid_input`.
npy_header parse_npy_header(std::span<const std::byte> bytes);

/// Reads a whole array; the bytes must end with it. Throws `errc::invalid_input`.
tensor parse_npy(std::span<const std::byte> bytes);

/// Reads an array of `size` bytes: `start` is the first ones, the header at least, and `rest` fills in those after
/// them. Throws `errc::invalid_input`.
tensor read_npy(std::span<const std::byte> start, int64_t size, const std::function<void(std::span<std::byte>)>& rest);

/// Returns the header of a C-order array of `dims`, padded as NumPy does; throws `errc::unsupported` for types that
/// NumPy does not have.
std::string make_npy_header(dtype type, std::span<const int64_t> dims);

} // namespace troupe

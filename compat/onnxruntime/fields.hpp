// Fields of an ONNX file. Its form is Protocol Buffers': fields, each with a number, one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace troupe::ort {

using bytes = std::span<const std::byte>;

struct field {
  uint64_t number = 0;
  uint64_t value = 0; // of a number
  bytes content;      // of a text, a message, a packed list
  bytes whole;        // with its number and length
};

/// Reads the next field; requires that there is one. Throws `errc::invalid_model` where it is cut short.
field next(bytes& rest);

/// Reads a number of a packed list. Throws like `next`.
uint64_t read_varint(bytes& rest);

/// Returns a text's characters.
std::string_view text_of(bytes b);

} // namespace troupe::ort

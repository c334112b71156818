// Protobuf's wire format (https://protobuf.dev/programming-guides/encoding), written field by field, for what needs no
// message classes. A message is its fields, one after the other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// Appends a number of seven bits a byte, the lowest first.
inline void put_varint(std::string& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    to.push_back(static_cast<char>(value | 0x80));
  to.push_back(static_cast<char>(value));
}

/// Returns a field that is a number.
inline std::string number_field(uint64_t field, int64_t value) {
  std::string made;
  put_varint(made, field << 3);
  put_varint(made, static_cast<uint64_t>(value));
  return made;
}

/// Returns the key and length of a field of `bytes`.
inline std::string head_of(uint64_t field, size_t bytes) {
  std::string made;
  put_varint(made, field << 3 | 2);
  put_varint(made, bytes);
  return made;
}

/// Returns a field that is a text, a message, or numbers that are packed.
inline std::string text_field(uint64_t field, std::string_view text) {
  return head_of(field, text.size()).append(text);
}

} // namespace troupe
